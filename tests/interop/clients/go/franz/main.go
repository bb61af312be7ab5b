// The driver of franz-go.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"barnabas.example/clients/loop"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func deadline() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), loop.Timeout)
}

func producer(request loop.Request, idempotence bool) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(request.Bootstrap, ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchMaxBytes(10_000_000),
		kgo.MaxBufferedRecords(100_000),
		kgo.ProducerLinger(20 * time.Millisecond),
	}
	switch request.Acks {
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()))
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()))
	}
	if !idempotence {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	codecs := map[string]kgo.CompressionCodec{
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	codec, found := codecs[request.Codec]
	if !found {
		codec = kgo.NoCompression()
	}
	return kgo.NewClient(append(options, kgo.ProducerBatchCompression(codec))...)
}

func produce(request loop.Request) (loop.Answer, error) {
	client, err := producer(request, request.Idempotence)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(request.Records))
	for index, each := range request.Records {
		record := &kgo.Record{
			Topic: request.Topic, Partition: each.Partition, Key: loop.Bytes(each.Key), Value: loop.Bytes(each.Value),
			Timestamp: time.UnixMilli(each.Timestamp),
		}
		for _, header := range each.Headers {
			var content []byte
			if header[1] != nil {
				content, _ = base64.StdEncoding.DecodeString(*header[1])
				if content == nil {
					content = []byte{}
				}
			}
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: *header[0], Value: content})
		}
		records[index] = record
	}
	until, cancel := deadline()
	defer cancel()
	var results []loop.Answer
	for _, result := range client.ProduceSync(until, records...) {
		answer := loop.Answer{"offset": result.Record.Offset, "error": nil}
		var refused *kerr.Error
		if errors.As(result.Err, &refused) {
			answer["error"] = refused.Code
		} else if result.Err != nil {
			answer["error"] = result.Err.Error()
		}
		results = append(results, answer)
	}
	return loop.Answer{"results": results}, nil
}

func stream(request loop.Request) (loop.Answer, error) {
	client, err := producer(request, true)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	numbers := loop.NewStream(request)
	for numbers.GoesOn() {
		record := &kgo.Record{Topic: request.Topic, Partition: 0, Value: numbers.Next()}
		client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { numbers.Ack(err) })
	}
	until, cancel := deadline()
	defer cancel()
	if err := client.Flush(until); err != nil {
		return nil, err
	}
	return numbers.Answer(), nil
}

func read(request loop.Request) (loop.Answer, error) {
	place := kgo.NewOffset().AtStart()
	if request.Timestamp != nil {
		place = kgo.NewOffset().AfterMilli(*request.Timestamp)
	} else if request.Offset != nil {
		place = kgo.NewOffset().At(*request.Offset)
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(request.Bootstrap, ",")...),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: {request.Partition: place}}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	until, cancel := deadline()
	defer cancel()
	records := []loop.Record{}
	for len(records) < request.Count {
		fetches := client.PollFetches(until)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(found *kgo.Record) {
			if len(records) == request.Count {
				return
			}
			record := loop.Record{
				Offset: found.Offset, Timestamp: found.Timestamp.UnixMilli(),
				Key: loop.Nullable(found.Key), Value: loop.Nullable(found.Value), Headers: []loop.Header{},
			}
			for _, header := range found.Headers {
				name := header.Key
				var content *string
				if header.Value != nil {
					text := base64.StdEncoding.EncodeToString(header.Value)
					content = &text
				}
				record.Headers = append(record.Headers, loop.Header{&name, content})
			}
			records = append(records, record)
		})
	}
	return loop.Answer{"records": records}, nil
}

// Runs a call with a new admin client.
func admin(work func(context.Context, *kadm.Client, loop.Request) (loop.Answer, error)) func(loop.Request) (loop.Answer, error) {
	return func(request loop.Request) (loop.Answer, error) {
		client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(request.Bootstrap, ",")...))
		if err != nil {
			return nil, err
		}
		defer client.Close()
		until, cancel := deadline()
		defer cancel()
		return work(until, kadm.NewClient(client), request)
	}
}

func offsets(until context.Context, client *kadm.Client, request loop.Request) (loop.Answer, error) {
	answer := loop.Answer{}
	earliest, err := client.ListStartOffsets(until, request.Topic)
	if err != nil {
		return nil, err
	}
	latest, err := client.ListEndOffsets(until, request.Topic)
	if err != nil {
		return nil, err
	}
	at, err := client.ListOffsetsAfterMilli(until, *request.Timestamp, request.Topic)
	if err != nil {
		return nil, err
	}
	for name, listed := range map[string]kadm.ListedOffsets{"earliest": earliest, "latest": latest, "at": at} {
		found, _ := listed.Lookup(request.Topic, request.Partition)
		if found.Err != nil {
			return nil, found.Err
		}
		answer[name] = found.Offset
	}
	return answer, nil
}

func createTopic(until context.Context, client *kadm.Client, request loop.Request) (loop.Answer, error) {
	configs := map[string]*string{}
	for name, value := range request.Configs {
		configs[name] = kadm.StringPtr(value)
	}
	_, err := client.CreateTopic(until, request.Partitions, -1, configs, request.Topic)
	return nil, err
}

func topics(until context.Context, client *kadm.Client, _ loop.Request) (loop.Answer, error) {
	listed, err := client.ListTopics(until)
	if err != nil {
		return nil, err
	}
	found := map[string]int{}
	for name, topic := range listed {
		found[name] = len(topic.Partitions)
	}
	return loop.Answer{"topics": found}, nil
}

func describeConfigs(until context.Context, client *kadm.Client, request loop.Request) (loop.Answer, error) {
	found, err := client.DescribeTopicConfigs(until, request.Topic)
	if err != nil {
		return nil, err
	}
	resource, err := found.On(request.Topic, nil)
	if err != nil {
		return nil, err
	}
	configs := map[string]*string{}
	for _, entry := range resource.Configs {
		configs[entry.Key] = entry.Value
	}
	return loop.Answer{"configs": configs}, resource.Err
}

func alterConfigs(until context.Context, client *kadm.Client, request loop.Request) (loop.Answer, error) {
	var changes []kadm.AlterConfig
	for name, value := range request.Configs {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: kadm.StringPtr(value)})
	}
	responses, err := client.AlterTopicConfigs(until, changes, request.Topic)
	if err != nil {
		return nil, err
	}
	response, err := responses.On(request.Topic, nil)
	return nil, errors.Join(err, response.Err)
}

func createPartitions(until context.Context, client *kadm.Client, request loop.Request) (loop.Answer, error) {
	responses, err := client.UpdatePartitions(until, int(request.Partitions), request.Topic)
	return nil, errors.Join(err, responses.Error())
}

func deleteRecords(until context.Context, client *kadm.Client, request loop.Request) (loop.Answer, error) {
	var wanted kadm.Offsets
	wanted.AddOffset(request.Topic, request.Partition, *request.Offset, -1)
	responses, err := client.DeleteRecords(until, wanted)
	if err := errors.Join(err, responses.Error()); err != nil {
		return nil, err
	}
	found, _ := responses.Lookup(request.Topic, request.Partition)
	return loop.Answer{"low_watermark": found.LowWatermark}, nil
}

func deleteTopic(until context.Context, client *kadm.Client, request loop.Request) (loop.Answer, error) {
	_, err := client.DeleteTopic(until, request.Topic)
	return nil, err
}

func cluster(until context.Context, client *kadm.Client, _ loop.Request) (loop.Answer, error) {
	found, err := client.BrokerMetadata(until)
	if err != nil {
		return nil, err
	}
	var brokers []string
	for _, broker := range found.Brokers {
		brokers = append(brokers, fmt.Sprintf("%s:%d", broker.Host, broker.Port))
	}
	return loop.Answer{"cluster_id": found.Cluster, "brokers": brokers}, nil
}

func main() {
	loop.Main(member, transactions, loop.Operations{
		"version": func(loop.Request) (loop.Answer, error) {
			return loop.Answer{"version": loop.Version("github.com/twmb/franz-go")}, nil
		},
		"produce": produce, "stream": stream, "read": read, "round": round,
		"offsets": admin(offsets), "create_topic": admin(createTopic), "topics": admin(topics),
		"describe_configs": admin(describeConfigs), "alter_configs": admin(alterConfigs),
		"create_partitions": admin(createPartitions), "delete_records": admin(deleteRecords),
		"delete_topic": admin(deleteTopic), "cluster": admin(cluster),
	})
}
