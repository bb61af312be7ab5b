package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"time"

	"barnabas.example/clients/loop"
	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// Adapts xdg-go/scram as sarama's examples do: sarama has no SCRAM of its own.
type scramClient struct{ *scram.ClientConversation }

func (client *scramClient) Begin(user, password, identity string) error {
	found, err := scram.SHA512.NewClient(user, password, identity)
	if err != nil {
		return err
	}
	client.ClientConversation = found.NewConversation()
	return nil
}

type fixedToken string

func (token fixedToken) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: string(token)}, nil
}

// Sets a request's login; see ../../python/secure.py.
func secure(settings *sarama.Config, login loop.Login) error {
	authority, err := os.ReadFile(login.CA)
	if err != nil {
		return err
	}
	trust := &tls.Config{RootCAs: x509.NewCertPool()}
	trust.RootCAs.AppendCertsFromPEM(authority)
	if login.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(login.Certificate, login.Certificate)
		if err != nil {
			return err
		}
		trust.Certificates = []tls.Certificate{certificate}
	}
	settings.Net.TLS.Enable = true
	settings.Net.TLS.Config = trust
	if login.Mechanism == "" {
		return nil
	}
	sasl := &settings.Net.SASL
	sasl.Enable = true
	sasl.Mechanism = sarama.SASLMechanism(login.Mechanism)
	sasl.User, sasl.Password = login.User, login.Password
	sasl.TokenProvider = fixedToken(login.Token)
	sasl.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{} }
	return nil
}

// Ends a session at a value, after committing every value up to it.
type untilValue struct {
	wanted string
	values []string
	stop   context.CancelFunc
}

func (*untilValue) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*untilValue) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (reading *untilValue) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			reading.values = append(reading.values, string(message.Value))
			session.MarkMessage(message, "")
			if string(message.Value) == reading.wanted {
				session.Commit()
				reading.stop()
				return nil
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func round(request loop.Request) (loop.Answer, error) {
	settings := config(request)
	settings.Consumer.Offsets.Initial = sarama.OffsetOldest
	settings.Consumer.Offsets.AutoCommit.Enable = false
	settings.Metadata.Retry.Max = 0 // a repeated connection would hide the first one's error
	if err := secure(settings, request.Login); err != nil {
		return nil, err
	}
	client, err := sarama.NewClient([]string{request.Bootstrap}, settings)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	record := &sarama.ProducerMessage{Topic: request.Topic, Value: sarama.StringEncoder(request.Value)}
	if _, _, err := producer.SendMessage(record); err != nil {
		return nil, err
	}
	group, err := sarama.NewConsumerGroupFromClient(request.Group, client)
	if err != nil {
		return nil, err
	}
	defer group.Close()
	until, stop := context.WithTimeout(context.Background(), time.Duration(request.TimeoutMs)*time.Millisecond)
	defer stop()
	reading := &untilValue{wanted: request.Value, values: []string{}, stop: stop}
	for until.Err() == nil {
		if err := group.Consume(until, []string{request.Topic}, reading); err != nil && until.Err() == nil {
			return nil, err
		}
	}
	return loop.Answer{"values": reading.values}, nil
}
