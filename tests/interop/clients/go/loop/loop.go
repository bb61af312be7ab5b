// Package loop answers one JSON request per line with one JSON answer per line; ../../python/loop.py has the format.
package loop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

// Timeout bounds each call of a client.
const Timeout = 30 * time.Second

const (
	progressEvery = 200
	streamLimit   = 60 * time.Second
)

// Header is a name and base64 or null.
type Header [2]*string

// Record is a record in a request or an answer.
type Record struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       *[]byte  `json:"key"`
	Value     *[]byte  `json:"value"`
	Headers   []Header `json:"headers"`
}

// Request has the fields of all requests.
type Request struct {
	Op          string            `json:"op"`
	Bootstrap   string            `json:"bootstrap"`
	Topic       string            `json:"topic"`
	Partition   int32             `json:"partition"`
	Partitions  int32             `json:"partitions"`
	Acks        string            `json:"acks"`
	Codec       string            `json:"codec"`
	Idempotence bool              `json:"idempotence"`
	Records     []Record          `json:"records"`
	Offset      *int64            `json:"offset"`
	Timestamp   *int64            `json:"timestamp"`
	Count       int               `json:"count"`
	Until       string            `json:"until"`
	Configs     map[string]string `json:"configs"`

	Name            string   `json:"name"`
	TransactionalID string   `json:"transactional_id"`
	Values          []string `json:"values"`
	Group           string   `json:"group"`
	Commit          bool     `json:"commit"`
	Committed       bool     `json:"committed"`
	Output          string   `json:"output"`
	Protocol        string   `json:"protocol"`

	Value     string `json:"value"`
	TimeoutMs int64  `json:"timeout_ms"`
	Login     Login  `json:"login"`
}

// Login is how a client authenticates; ../../python/secure.py describes it.
type Login struct {
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Mechanism   string `json:"mechanism"`
	User        string `json:"user"`
	Password    string `json:"password"`
	Token       string `json:"token"`
	IsDelegated bool   `json:"is_delegated"`
}

// Answer is any JSON object.
type Answer map[string]any

// Unsupported is the error of a feature that the client lacks.
type Unsupported string

func (reason Unsupported) Error() string { return string(reason) }

// Bytes returns the value of a nullable field, or nil.
func Bytes(value *[]byte) []byte {
	if value == nil {
		return nil
	}
	if *value == nil {
		return []byte{}
	}
	return *value
}

// Nullable returns a nullable field with the value, or nil.
func Nullable(value []byte) *[]byte {
	if value == nil {
		return nil
	}
	return &value
}

var out sync.Mutex

// Say writes one line of output.
func Say(answer Answer) {
	out.Lock()
	defer out.Unlock()
	line, err := json.Marshal(answer)
	if err != nil {
		line = []byte(fmt.Sprintf(`{"error": %q}`, err.Error()))
	}
	os.Stdout.Write(append(line, '\n'))
}

// Stream is the numbers that a stream sends, one a millisecond, until its file exists.
type Stream struct {
	Sent     int
	until    string
	deadline time.Time
	mutex    sync.Mutex
	acked    int
	failed   []string
}

// NewStream returns the stream of a request.
func NewStream(request Request) *Stream {
	return &Stream{until: request.Until, deadline: time.Now().Add(streamLimit)}
}

// GoesOn waits for the time of the next record, and returns whether to send it.
func (stream *Stream) GoesOn() bool {
	if _, err := os.Stat(stream.until); err == nil || time.Now().After(stream.deadline) {
		return false
	}
	time.Sleep(time.Millisecond)
	return true
}

// Next returns the value of the next record.
func (stream *Stream) Next() []byte {
	stream.Sent++
	return []byte(fmt.Sprint(stream.Sent - 1))
}

// Ack counts one acknowledgement.
func (stream *Stream) Ack(err error) {
	stream.mutex.Lock()
	defer stream.mutex.Unlock()
	if err != nil {
		stream.failed = append(stream.failed, err.Error())
		return
	}
	stream.acked++
	if stream.acked%progressEvery == 0 {
		Say(Answer{"progress": stream.acked})
	}
}

// Answer returns the final answer.
func (stream *Stream) Answer() Answer {
	stream.mutex.Lock()
	defer stream.mutex.Unlock()
	failed := append([]string{}, stream.failed...)
	return Answer{"sent": stream.Sent, "acked": stream.acked, "failed": failed[:min(5, len(failed))]}
}

// Version returns the version of a module that this program was built with.
func Version(module string) string {
	info, _ := debug.ReadBuildInfo()
	for _, dependency := range info.Deps {
		if dependency.Path == module {
			return dependency.Version
		}
	}
	return "unknown"
}

// Operations are the handlers of requests by name.
type Operations map[string]func(Request) (Answer, error)

// Serve answers requests until standard input ends.
func Serve(tables ...Operations) {
	operations := Operations{}
	for _, table := range tables {
		maps.Copy(operations, table)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var request Request
		if err := json.Unmarshal(line, &request); err != nil {
			Say(Answer{"error": err.Error()})
			continue
		}
		operation, found := operations[request.Op]
		if !found {
			Say(Answer{"unsupported": "no such call in this client"})
			continue
		}
		answer, err := operation(request)
		var unsupported Unsupported
		switch {
		case errors.As(err, &unsupported):
			answer = Answer{"unsupported": unsupported.Error()}
		case err != nil:
			answer = Answer{"error": err.Error()}
		case answer == nil:
			answer = Answer{}
		}
		Say(answer)
	}
}
