// Driver of kafkajs that logs in; see ../python/secure.py.

'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const { Kafka, logLevel } = require('kafkajs');

const kafka = ({ bootstrap, login, timeout_ms: timeout }) => {
  const ssl = { ca: [fs.readFileSync(login.ca, 'utf-8')] };
  if (login.certificate) {
    ssl.cert = ssl.key = fs.readFileSync(login.certificate, 'utf-8');
  }
  const mechanism = login.mechanism?.toLowerCase();
  const credentials = login.token
    ? { oauthBearerProvider: async () => ({ value: login.token }) }
    : { username: login.user, password: login.password };
  return new Kafka({
    clientId: 'secure',
    brokers: [bootstrap],
    ssl,
    ...(mechanism && { sasl: { mechanism, ...credentials } }),
    connectionTimeout: timeout,
    authenticationTimeout: timeout,
    logLevel: logLevel.NOTHING,
    retry: { retries: 2 },
  });
};

const round = async (request) => {
  const client = kafka(request);
  const producer = client.producer({ allowAutoTopicCreation: false });
  await producer.connect();
  await producer.send({ topic: request.topic, messages: [{ value: request.value }] });
  await producer.disconnect();
  const values = [];
  const consumer = client.consumer({ groupId: request.group, maxWaitTimeInMs: 200 });
  await consumer.connect();
  await consumer.subscribe({ topic: request.topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error('the value did not arrive')), request.timeout_ms);
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    const eachMessage = async ({ message }) => {
      values.push(String(message.value));
      if (values.at(-1) === request.value) {
        clearTimeout(timer);
        resolve();
      }
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return { values };
};

const main = async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const answer = await round(JSON.parse(line)).catch((error) => ({ error: String(error) }));
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
  process.exit(0);
};

main();
