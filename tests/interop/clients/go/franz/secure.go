package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"
	"time"

	"barnabas.example/clients/loop"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Options for a request's login; see ../../python/secure.py.
func security(login loop.Login) ([]kgo.Opt, error) {
	authority, err := os.ReadFile(login.CA)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(authority)
	if login.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(login.Certificate, login.Certificate)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	options := []kgo.Opt{kgo.DialTLSConfig(config)}
	mechanisms := map[string]sasl.Mechanism{
		"PLAIN":         plain.Auth{User: login.User, Pass: login.Password}.AsMechanism(),
		"SCRAM-SHA-512": scram.Auth{User: login.User, Pass: login.Password, IsToken: login.IsDelegated}.AsSha512Mechanism(),
		"OAUTHBEARER":   oauth.Auth{Token: login.Token}.AsMechanism(),
	}
	if mechanism, found := mechanisms[login.Mechanism]; found {
		options = append(options, kgo.SASL(mechanism))
	}
	return options, nil
}

func round(request loop.Request) (loop.Answer, error) {
	options, err := security(request.Login)
	if err != nil {
		return nil, err
	}
	timeout := time.Duration(request.TimeoutMs) * time.Millisecond
	until, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := kgo.NewClient(append(options,
		kgo.SeedBrokers(strings.Split(request.Bootstrap, ",")...),
		kgo.ConsumerGroup(request.Group),
		kgo.ConsumeTopics(request.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	// A ping returns the connection's error; a produce would retry until its timeout.
	if err := client.Ping(until); err != nil {
		return nil, err
	}
	record := &kgo.Record{Topic: request.Topic, Value: []byte(request.Value)}
	if err := client.ProduceSync(until, record).FirstErr(); err != nil {
		return nil, err
	}
	values := []string{}
	for found := false; !found; {
		fetches := client.PollFetches(until)
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			values = append(values, string(record.Value))
			found = found || string(record.Value) == request.Value
		})
	}
	return loop.Answer{"values": values}, client.CommitUncommittedOffsets(until)
}
