package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"barnabas.example/clients/loop"
	"github.com/IBM/sarama"
)

var instances = map[string]sarama.SyncProducer{}

func transactional(request loop.Request) *sarama.Config {
	request.Idempotence = true
	settings := config(request)
	settings.Producer.Transaction.ID = request.TransactionalID
	settings.Producer.Transaction.Retry.Max = 300
	settings.Producer.Transaction.Retry.Backoff = 100 * time.Millisecond
	settings.Producer.Flush.Frequency = 0
	return settings
}

func txnOpen(request loop.Request) (loop.Answer, error) {
	producer, err := sarama.NewSyncProducer([]string{request.Bootstrap}, transactional(request))
	instances[request.Name] = producer
	return nil, err
}

func begun(request loop.Request) (sarama.SyncProducer, error) {
	producer := instances[request.Name]
	if producer.TxnStatus()&sarama.ProducerTxnFlagInTransaction == 0 {
		return producer, producer.BeginTxn()
	}
	return producer, nil
}

func txnSend(request loop.Request) (loop.Answer, error) {
	producer, err := begun(request)
	if err != nil {
		return nil, err
	}
	var messages []*sarama.ProducerMessage
	for _, value := range request.Values {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: request.Topic, Partition: request.Partition, Value: sarama.StringEncoder(value),
		})
	}
	return nil, producer.SendMessages(messages)
}

func txnOffsets(request loop.Request) (loop.Answer, error) {
	producer, err := begun(request)
	if err != nil {
		return nil, err
	}
	offset := &sarama.PartitionOffsetMetadata{Partition: request.Partition, Offset: *request.Offset}
	offsets := map[string][]*sarama.PartitionOffsetMetadata{request.Topic: {offset}}
	return nil, producer.AddOffsetsToTxn(offsets, request.Group)
}

func txnEnd(request loop.Request) (loop.Answer, error) {
	if request.Commit {
		return nil, instances[request.Name].CommitTxn()
	}
	return nil, instances[request.Name].AbortTxn()
}

func txnClose(request loop.Request) (loop.Answer, error) {
	_ = instances[request.Name].Close() // a fenced producer reports its error once more
	delete(instances, request.Name)
	return nil, nil
}

func readValues(request loop.Request) (loop.Answer, error) {
	settings := config(request)
	if request.Committed {
		settings.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer([]string{request.Bootstrap}, settings)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(request.Topic, request.Partition, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	reading := loop.NewReading(request)
	for wait, more := reading.Next(); more; wait, more = reading.Next() {
		select {
		case found := <-partition.Messages():
			reading.Values = append(reading.Values, string(found.Value))
		case failure := <-partition.Errors():
			return nil, failure
		case <-time.After(wait):
			if wait == loop.Timeout {
				return nil, fmt.Errorf("%d values came in time: %v", len(reading.Values), reading.Values)
			}
		}
	}
	return loop.Answer{"values": reading.Values}, nil
}

func transform(request loop.Request) (loop.Answer, error) {
	progress := loop.NewTransform(request)
	return progress.Run(func() error { return transformUntilError(request, progress) })
}

func transformUntilError(request loop.Request, progress *loop.Transform) error {
	settings := config(loop.Request{Bootstrap: request.Bootstrap})
	settings.Consumer.Return.Errors = false
	settings.Consumer.IsolationLevel = sarama.ReadCommitted
	settings.Consumer.Offsets.AutoCommit.Enable = false
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.Group.InstanceId = "transformer"
	settings.Consumer.Group.Session.Timeout = loop.SessionTimeout
	settings.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond

	producer, err := sarama.NewSyncProducer([]string{request.Bootstrap}, transactional(request))
	if err != nil {
		return err
	}
	defer producer.Close()
	consumer, err := sarama.NewConsumerGroup([]string{request.Bootstrap}, request.Group, settings)
	if err != nil {
		return err
	}
	defer consumer.Close()
	until, cancel := context.WithCancel(context.Background())
	defer cancel()
	handler := &transformer{request: request, producer: producer, progress: progress, cancel: cancel}
	go func() {
		for progress.GoesOn() && until.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	for until.Err() == nil {
		if err := consumer.Consume(until, []string{request.Topic}, handler); err != nil {
			return errors.Join(err, handler.failure)
		}
	}
	return handler.failure
}

// A handler of one claim after another: one producer has one transaction at a time.
type transformer struct {
	request  loop.Request
	producer sarama.SyncProducer
	progress *loop.Transform
	cancel   context.CancelFunc
	turn     chan struct{}
	failure  error
}

func (each *transformer) Setup(sarama.ConsumerGroupSession) error {
	each.turn = make(chan struct{}, 1)
	return nil
}

func (each *transformer) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (each *transformer) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			batch := []*sarama.ConsumerMessage{message}
			for len(batch) < 100 && len(claim.Messages()) > 0 {
				if message, open = <-claim.Messages(); open {
					batch = append(batch, message)
				}
			}
			each.turn <- struct{}{}
			err := each.failure
			if err == nil && session.Context().Err() == nil {
				if err = each.transact(session, batch); err != nil {
					fmt.Fprintln(os.Stderr, err)
					each.failure = err
					each.cancel()
				}
			}
			<-each.turn
			if err != nil {
				return err
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func (each *transformer) transact(session sarama.ConsumerGroupSession, batch []*sarama.ConsumerMessage) error {
	if err := each.producer.BeginTxn(); err != nil {
		return err
	}
	var messages []*sarama.ProducerMessage
	for _, found := range batch {
		messages = append(messages, &sarama.ProducerMessage{
			Topic: each.request.Output, Partition: found.Partition, Value: sarama.ByteEncoder(found.Value),
		})
	}
	if err := each.producer.SendMessages(messages); err != nil {
		return err
	}
	metadata := &sarama.ConsumerGroupMetadata{
		GroupID: each.request.Group, GenerationID: session.GenerationID(), MemberID: session.MemberID(),
	}
	instance := "transformer"
	metadata.GroupInstanceID = &instance
	if err := each.producer.AddMessageToTxnWithGroupMetadata(batch[len(batch)-1], metadata, nil); err != nil {
		return err
	}
	if err := each.producer.CommitTxn(); err != nil {
		return err
	}
	each.progress.Committed(len(batch))
	return nil
}

var transactions = loop.Operations{
	"txn_open": txnOpen, "txn_send": txnSend, "txn_offsets": txnOffsets, "txn_end": txnEnd, "txn_close": txnClose,
	"read_values": readValues, "transform": transform,
}
