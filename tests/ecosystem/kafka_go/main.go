// A producer and a consumer on kafka-go: see tests/support/ecosystem/exchange.py for what each must do.
//
//	deliveries produce BOOTSTRAP TOPIC COUNT
//	deliveries consume BOOTSTRAP TOPIC GROUP
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

func main() {
	mode, bootstrap, topic, last := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	if mode == "produce" {
		produce(bootstrap, topic, last)
	} else {
		consume(bootstrap, topic, last)
	}
}

func produce(bootstrap, topic, last string) {
	count, err := strconv.Atoi(last)
	if err != nil {
		log.Fatal(err)
	}
	// BatchTimeout is how long a batch waits for more records, one second by default.
	writer := &kafka.Writer{
		Addr: kafka.TCP(bootstrap), Topic: topic, Balancer: &kafka.RoundRobin{},
		RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond, MaxAttempts: 60,
	}
	for number := range count {
		message := kafka.Message{Value: []byte(fmt.Sprintf("record %d", number))}
		if err := writer.WriteMessages(context.Background(), message); err != nil {
			log.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := writer.Close(); err != nil {
		log.Fatal(err)
	}
}

func consume(bootstrap, topic, group string) {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{bootstrap}, Topic: topic, GroupID: group, StartOffset: kafka.FirstOffset,
		// A member that was killed keeps its partitions until its session times out.
		SessionTimeout: 6 * time.Second, HeartbeatInterval: 500 * time.Millisecond,
	})
	for {
		message, err := reader.FetchMessage(context.Background())
		if err != nil {
			log.Print(err)
			continue
		}
		fmt.Println(string(message.Value))
		if err := reader.CommitMessages(context.Background(), message); err != nil {
			log.Print(err)
		}
	}
}
