package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"barnabas.example/clients/loop"
	"github.com/IBM/sarama"
)

type printing struct{}

func (printing) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (printing) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (printing) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			fmt.Println("got", string(message.Value))
			session.MarkMessage(message, "")
			session.Commit()
		case <-session.Context().Done():
			return nil
		}
	}
}

// A group member; tests/support/groups/group_member.py specifies its behavior.
func member(bootstrap, group, topic, _, instance string) error {
	settings := config(loop.Request{Bootstrap: bootstrap})
	settings.Consumer.Return.Errors = false
	settings.Consumer.Offsets.AutoCommit.Enable = false
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.Group.Session.Timeout = 6 * time.Second
	settings.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	settings.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	if instance != "" {
		settings.Consumer.Group.InstanceId = instance
		settings.Consumer.Group.Session.Timeout = 30 * time.Second
	}
	until, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for until.Err() == nil {
		if err := consume(until, settings, bootstrap, group, topic); err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// Runs until it fails: sarama gives up without a broker, and applications have to start again.
func consume(until context.Context, settings *sarama.Config, bootstrap, group, topic string) error {
	consumer, err := sarama.NewConsumerGroup([]string{bootstrap}, group, settings)
	if err != nil {
		return err
	}
	defer consumer.Close()
	for until.Err() == nil {
		if err := consumer.Consume(until, []string{topic}, printing{}); err != nil {
			return err
		}
	}
	return nil
}
