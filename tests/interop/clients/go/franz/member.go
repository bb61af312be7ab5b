package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A group member; tests/support/groups/group_member.py specifies its behavior.
func member(bootstrap, group, topic, assignor, instance string) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.DisableAutoCommit(),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.SessionTimeout(6 * time.Second),
		kgo.Balancers(kgo.RangeBalancer()),
	}
	if assignor == "cooperative-sticky" {
		options = append(options, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	}
	if assignor == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	if instance != "" {
		options = append(options, kgo.InstanceID(instance), kgo.SessionTimeout(30*time.Second))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	until, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for until.Err() == nil {
		found := client.PollFetches(until)
		found.EachRecord(func(record *kgo.Record) { fmt.Println("got", string(record.Value)) })
		if found.NumRecords() > 0 {
			if err := client.CommitUncommittedOffsets(until); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}
	return nil
}
