package loop

import (
	"fmt"
	"os"
)

// Main runs `member` if that is the first argument, and otherwise answers requests.
func Main(member func(bootstrap, group, topic, assignor, instance string) error, operations ...Operations) {
	if len(os.Args) < 6 || os.Args[1] != "member" {
		Serve(operations...)
		return
	}
	instance := ""
	if len(os.Args) > 6 {
		instance = os.Args[6]
	}
	if err := member(os.Args[2], os.Args[3], os.Args[4], os.Args[5], instance); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
