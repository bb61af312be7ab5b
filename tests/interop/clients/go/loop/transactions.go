package loop

import (
	"fmt"
	"os"
	"time"
)

// SessionTimeout is that of a transformer, a static member that may be killed and restarted meanwhile.
const SessionTimeout = 30 * time.Second

const transformLimit = 150 * time.Second

const (
	readOn     = 500 * time.Millisecond
	retryPause = 200 * time.Millisecond
)

// Transform is the progress of a transform, which runs until its file exists.
type Transform struct {
	sent     int
	failed   []string
	until    string
	deadline time.Time
}

// NewTransform returns the progress of a request.
func NewTransform(request Request) *Transform {
	return &Transform{until: request.Until, failed: []string{}, deadline: time.Now().Add(transformLimit)}
}

// GoesOn returns whether to run another transaction.
func (transform *Transform) GoesOn() bool {
	_, err := os.Stat(transform.until)
	return err != nil && time.Now().Before(transform.deadline)
}

// Committed counts the records of a committed transaction.
func (transform *Transform) Committed(records int) {
	transform.sent += records
	Say(Answer{"progress": transform.sent})
}

// Run calls `work`, again after each error, until the transform is to end; returns the final answer.
func (transform *Transform) Run(work func() error) (Answer, error) {
	for transform.GoesOn() {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			transform.failed = append(transform.failed, err.Error())
			time.Sleep(retryPause)
		}
	}
	return Answer{"sent": transform.sent, "failed": transform.failed[max(0, len(transform.failed)-5):]}, nil
}

// Reading is the values of a read_values.
type Reading struct {
	Values []string
	count  int
	end    time.Time
}

// NewReading returns the reading of a request.
func NewReading(request Request) *Reading {
	return &Reading{Values: []string{}, count: request.Count}
}

// Next returns how long to wait for the next value, or false if all are read.
func (reading *Reading) Next() (time.Duration, bool) {
	if reading.end.IsZero() {
		if len(reading.Values) < reading.count {
			return Timeout, true
		}
		reading.end = time.Now().Add(readOn)
	}
	left := time.Until(reading.end)
	return left, left > 0
}
