// The driver of sarama.
package main

import (
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"barnabas.example/clients/loop"
	"github.com/IBM/sarama"
)

func config(request loop.Request) *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.Return.Errors = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.MaxMessageBytes = 10_000_000
	config.Producer.Flush.Frequency = 20 * time.Millisecond
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Retry.Max = 1000
	config.Producer.Retry.Backoff = 100 * time.Millisecond
	config.Metadata.Retry.Max = 200
	switch request.Acks {
	case "0":
		config.Producer.RequiredAcks = sarama.NoResponse
	case "1":
		config.Producer.RequiredAcks = sarama.WaitForLocal
	}
	if request.Codec != "" {
		_ = config.Producer.Compression.UnmarshalText([]byte(request.Codec))
	}
	config.Producer.Idempotent = request.Idempotence
	if request.Idempotence {
		config.Net.MaxOpenRequests = 1
	}
	config.Consumer.Return.Errors = true
	return config
}

func produce(request loop.Request) (loop.Answer, error) {
	producer, err := sarama.NewSyncProducer([]string{request.Bootstrap}, config(request))
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, len(request.Records))
	results := make([]loop.Answer, len(request.Records))
	for index, each := range request.Records {
		message := &sarama.ProducerMessage{
			Topic: request.Topic, Partition: each.Partition, Timestamp: time.UnixMilli(each.Timestamp), Metadata: index,
		}
		if key := loop.Bytes(each.Key); key != nil {
			message.Key = sarama.ByteEncoder(key)
		}
		if value := loop.Bytes(each.Value); value != nil {
			message.Value = sarama.ByteEncoder(value)
		}
		for _, header := range each.Headers {
			var content []byte
			if header[1] != nil {
				content, _ = base64.StdEncoding.DecodeString(*header[1])
				if content == nil {
					content = []byte{}
				}
			}
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(*header[0]), Value: content})
		}
		messages[index] = message
		results[index] = loop.Answer{"offset": nil, "error": nil}
	}
	err = producer.SendMessages(messages)
	var refused sarama.ProducerErrors
	if errors.As(err, &refused) {
		for _, each := range refused {
			var code sarama.KError
			index := each.Msg.Metadata.(int)
			if errors.As(each.Err, &code) {
				results[index]["error"] = int16(code)
			} else {
				results[index]["error"] = each.Err.Error()
			}
		}
	} else if err != nil {
		return nil, err
	}
	return loop.Answer{"results": results}, nil
}

func stream(request loop.Request) (loop.Answer, error) {
	request.Idempotence = true
	producer, err := sarama.NewAsyncProducer([]string{request.Bootstrap}, config(request))
	if err != nil {
		return nil, err
	}
	numbers := loop.NewStream(request)
	var answers sync.WaitGroup
	answers.Add(2)
	go func() {
		defer answers.Done()
		for range producer.Successes() {
			numbers.Ack(nil)
		}
	}()
	go func() {
		defer answers.Done()
		for failure := range producer.Errors() {
			numbers.Ack(failure)
		}
	}()
	for numbers.GoesOn() {
		value := sarama.ByteEncoder(numbers.Next())
		producer.Input() <- &sarama.ProducerMessage{Topic: request.Topic, Partition: 0, Value: value}
	}
	producer.AsyncClose()
	answers.Wait()
	return numbers.Answer(), nil
}

func read(request loop.Request) (loop.Answer, error) {
	client, err := sarama.NewClient([]string{request.Bootstrap}, config(request))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	place := sarama.OffsetOldest
	if request.Timestamp != nil {
		if place, err = client.GetOffset(request.Topic, request.Partition, *request.Timestamp); err != nil {
			return nil, err
		}
	} else if request.Offset != nil {
		place = *request.Offset
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(request.Topic, request.Partition, place)
	if errors.Is(err, sarama.ErrOffsetOutOfRange) {
		// sarama has no reset policy, so applications reset the offset themselves.
		partition, err = consumer.ConsumePartition(request.Topic, request.Partition, sarama.OffsetOldest)
	}
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	records := []loop.Record{}
	timeout := time.After(loop.Timeout)
	for len(records) < request.Count {
		select {
		case found := <-partition.Messages():
			record := loop.Record{
				Offset: found.Offset, Timestamp: found.Timestamp.UnixMilli(),
				Key: loop.Nullable(found.Key), Value: loop.Nullable(found.Value), Headers: []loop.Header{},
			}
			for _, header := range found.Headers {
				name := string(header.Key)
				var content *string
				if header.Value != nil {
					text := base64.StdEncoding.EncodeToString(header.Value)
					content = &text
				}
				record.Headers = append(record.Headers, loop.Header{&name, content})
			}
			records = append(records, record)
		case failure := <-partition.Errors():
			return nil, failure
		case <-timeout:
			return nil, errors.New("not all records came in time")
		}
	}
	return loop.Answer{"records": records}, nil
}

func offsets(request loop.Request) (loop.Answer, error) {
	client, err := sarama.NewClient([]string{request.Bootstrap}, config(request))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	answer := loop.Answer{}
	places := map[string]int64{"earliest": sarama.OffsetOldest, "latest": sarama.OffsetNewest, "at": *request.Timestamp}
	for name, place := range places {
		if answer[name], err = client.GetOffset(request.Topic, request.Partition, place); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func admin(work func(sarama.ClusterAdmin, loop.Request) (loop.Answer, error)) func(loop.Request) (loop.Answer, error) {
	return func(request loop.Request) (loop.Answer, error) {
		client, err := sarama.NewClusterAdmin([]string{request.Bootstrap}, config(request))
		if err != nil {
			return nil, err
		}
		defer client.Close()
		return work(client, request)
	}
}

func createTopic(client sarama.ClusterAdmin, request loop.Request) (loop.Answer, error) {
	detail := &sarama.TopicDetail{
		NumPartitions: request.Partitions, ReplicationFactor: 1, ConfigEntries: map[string]*string{},
	}
	for name, value := range request.Configs {
		detail.ConfigEntries[name] = &value
	}
	return nil, client.CreateTopic(request.Topic, detail, false)
}

func topics(client sarama.ClusterAdmin, _ loop.Request) (loop.Answer, error) {
	listed, err := client.ListTopics()
	found := map[string]int32{}
	for name, topic := range listed {
		found[name] = topic.NumPartitions
	}
	return loop.Answer{"topics": found}, err
}

func describeConfigs(client sarama.ClusterAdmin, request loop.Request) (loop.Answer, error) {
	entries, err := client.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: request.Topic})
	configs := map[string]string{}
	for _, entry := range entries {
		configs[entry.Name] = entry.Value
	}
	return loop.Answer{"configs": configs}, err
}

func alterConfigs(client sarama.ClusterAdmin, request loop.Request) (loop.Answer, error) {
	entries := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range request.Configs {
		entries[name] = sarama.IncrementalAlterConfigsEntry{
			Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value,
		}
	}
	return nil, client.IncrementalAlterConfig(sarama.TopicResource, request.Topic, entries, false)
}

func createPartitions(client sarama.ClusterAdmin, request loop.Request) (loop.Answer, error) {
	return nil, client.CreatePartitions(request.Topic, request.Partitions, nil, false)
}

func deleteRecords(client sarama.ClusterAdmin, request loop.Request) (loop.Answer, error) {
	return nil, client.DeleteRecords(request.Topic, map[int32]int64{request.Partition: *request.Offset})
}

func deleteTopic(client sarama.ClusterAdmin, request loop.Request) (loop.Answer, error) {
	return nil, client.DeleteTopic(request.Topic)
}

func cluster(client sarama.ClusterAdmin, _ loop.Request) (loop.Answer, error) {
	found, _, err := client.DescribeCluster()
	var brokers []string
	for _, broker := range found {
		brokers = append(brokers, broker.Addr())
	}
	return loop.Answer{"brokers": brokers}, err
}

func main() {
	loop.Main(member, transactions, loop.Operations{
		"version": func(loop.Request) (loop.Answer, error) {
			return loop.Answer{"version": loop.Version("github.com/IBM/sarama")}, nil
		},
		"produce": produce, "stream": stream, "read": read, "round": round, "offsets": offsets,
		"create_topic": admin(createTopic), "topics": admin(topics), "describe_configs": admin(describeConfigs),
		"alter_configs": admin(alterConfigs), "create_partitions": admin(createPartitions),
		"delete_records": admin(deleteRecords), "delete_topic": admin(deleteTopic), "cluster": admin(cluster),
	})
}
