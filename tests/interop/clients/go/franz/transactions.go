package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"barnabas.example/clients/loop"
	"github.com/twmb/franz-go/pkg/kgo"
)

type instance struct {
	client        *kgo.Client
	inTransaction bool
}

var instances = map[string]*instance{}

func transactional(request loop.Request) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(strings.Split(request.Bootstrap, ",")...),
		kgo.TransactionalID(request.TransactionalID),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
}

// Initializes the producer id now: the client does it at the first produce, and would fence no older instance before.
func initialized(client *kgo.Client) error {
	until, cancel := deadline()
	defer cancel()
	_, _, err := client.ProducerID(until)
	return err
}

func txnOpen(request loop.Request) (loop.Answer, error) {
	client, err := kgo.NewClient(transactional(request)...)
	if err != nil {
		return nil, err
	}
	instances[request.Name] = &instance{client: client}
	return nil, initialized(client)
}

func txnSend(request loop.Request) (loop.Answer, error) {
	found := instances[request.Name]
	if !found.inTransaction {
		if err := found.client.BeginTransaction(); err != nil {
			return nil, err
		}
		found.inTransaction = true
	}
	var records []*kgo.Record
	for _, value := range request.Values {
		records = append(records, &kgo.Record{Topic: request.Topic, Partition: request.Partition, Value: []byte(value)})
	}
	until, cancel := deadline()
	defer cancel()
	return nil, found.client.ProduceSync(until, records...).FirstErr()
}

func txnOffsets(loop.Request) (loop.Answer, error) {
	return nil, loop.Unsupported("it commits only offsets of records that its own session has read")
}

func txnEnd(request loop.Request) (loop.Answer, error) {
	found := instances[request.Name]
	found.inTransaction = false
	until, cancel := deadline()
	defer cancel()
	return nil, found.client.EndTransaction(until, kgo.TransactionEndTry(request.Commit))
}

func txnClose(request loop.Request) (loop.Answer, error) {
	instances[request.Name].client.Close()
	delete(instances, request.Name)
	return nil, nil
}

func readValues(request loop.Request) (loop.Answer, error) {
	isolation := kgo.ReadUncommitted()
	if request.Committed {
		isolation = kgo.ReadCommitted()
	}
	place := map[string]map[int32]kgo.Offset{request.Topic: {request.Partition: kgo.NewOffset().AtStart()}}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(request.Bootstrap, ",")...), kgo.ConsumePartitions(place), kgo.FetchIsolationLevel(isolation),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	reading := loop.NewReading(request)
	for wait, more := reading.Next(); more; wait, more = reading.Next() {
		until, cancel := context.WithTimeout(context.Background(), wait)
		fetches := client.PollFetches(until)
		cancel()
		if err := fetches.Err(); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return nil, err
		}
		before := len(reading.Values)
		fetches.EachRecord(func(found *kgo.Record) { reading.Values = append(reading.Values, string(found.Value)) })
		if wait == loop.Timeout && len(reading.Values) == before {
			return nil, fmt.Errorf("%d values came in time: %v", before, reading.Values)
		}
	}
	return loop.Answer{"values": reading.Values}, nil
}

func transform(request loop.Request) (loop.Answer, error) {
	progress := loop.NewTransform(request)
	return progress.Run(func() error { return transformUntilError(request, progress) })
}

func transformUntilError(request loop.Request, progress *loop.Transform) error {
	options := append(transactional(request),
		kgo.ConsumerGroup(request.Group),
		kgo.SessionTimeout(loop.SessionTimeout),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.ConsumeTopics(request.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
	)
	if request.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	} else {
		options = append(options, kgo.InstanceID("transformer"))
	}
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return err
	}
	defer session.Close()
	if err := initialized(session.Client()); err != nil {
		return err
	}
	for progress.GoesOn() {
		until, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		fetches := session.PollFetches(until)
		cancel()
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return err
		}
		var records []*kgo.Record
		fetches.EachRecord(func(found *kgo.Record) {
			records = append(records, &kgo.Record{Topic: request.Output, Partition: found.Partition, Value: found.Value})
		})
		until, cancel = deadline()
		failure := session.ProduceSync(until, records...).FirstErr()
		committed, err := session.End(until, failure == nil)
		cancel()
		if err != nil {
			return err
		}
		if committed {
			progress.Committed(len(records))
		}
	}
	return nil
}

var transactions = loop.Operations{
	"txn_open": txnOpen, "txn_send": txnSend, "txn_offsets": txnOffsets, "txn_end": txnEnd, "txn_close": txnClose,
	"read_values": readValues, "transform": transform,
}
