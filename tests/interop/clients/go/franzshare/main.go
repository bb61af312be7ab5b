// A member of a share group on franz-go.
//
//	franzshare BOOTSTRAP GROUP TOPIC COUNT
//
// Prints "VALUE DELIVERIES" of each record, whose value is a number: releases the first delivery of numbers that end in
// 1, rejects those that end in 2, accepts the others. Ends after COUNT records, once their acknowledgements are stored.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func run(bootstrap, group, topic string, count int) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(bootstrap, ",")...),
		kgo.ShareGroup(group),
		kgo.ConsumeTopics(topic),
		kgo.FetchMaxWait(200*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	until, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for count > 0 {
		found := client.PollFetches(until)
		if until.Err() != nil {
			return until.Err()
		}
		found.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value), record.DeliveryCount())
			number, _ := strconv.Atoi(string(record.Value))
			switch {
			case number%10 == 1 && record.DeliveryCount() == 1:
				record.Ack(kgo.AckRelease)
			case number%10 == 2:
				record.Ack(kgo.AckReject)
			default:
				record.Ack(kgo.AckAccept)
			}
			count--
		})
		if err := client.FlushAcks(until); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	return nil
}

func main() {
	count, err := strconv.Atoi(os.Args[4])
	if err == nil {
		err = run(os.Args[1], os.Args[2], os.Args[3], count)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
