// Driver for kafkajs: one JSON request per line, one JSON answer per line; see ../python/loop.py.
// kafkajs reads in consumer groups only, so reading without a group is unsupported here.

'use strict';

const fs = require('node:fs');
const readline = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');
const { CompressionTypes, ConfigResourceTypes, Kafka, logLevel } = require('kafkajs');

const PROGRESS_EVERY = 200;
const STREAM_LIMIT_MS = 60_000;
const CODECS = { none: CompressionTypes.None, gzip: CompressionTypes.GZIP };
const ACKS = { 0: 0, 1: 1, all: -1 };

class Unsupported extends Error {}

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);
const unpack = (text) => (text === null ? null : Buffer.from(text, 'base64'));

const kafka = (request) =>
  new Kafka({
    clientId: 'driver',
    brokers: [request.bootstrap],
    logLevel: logLevel.ERROR,
    retry: { retries: 1000, initialRetryTime: 100, maxRetryTime: 500 },
  });

const withProducer = async (request, idempotent, work) => {
  const producer = kafka(request).producer({ idempotent, maxInFlightRequests: 1, allowAutoTopicCreation: false });
  await producer.connect();
  try {
    return await work(producer);
  } finally {
    await producer.disconnect();
  }
};

const produce = (request) => {
  const compression = CODECS[request.codec];
  if (compression === undefined) {
    throw new Unsupported(`kafkajs has no ${request.codec} of its own`);
  }
  return withProducer(request, request.idempotence, async (producer) => {
    const messages = request.records.map((record) => ({
      partition: record.partition,
      key: unpack(record.key),
      value: unpack(record.value),
      timestamp: String(record.timestamp),
      headers: headersOf(record),
    }));
    try {
      await producer.send({ topic: request.topic, acks: ACKS[request.acks], compression, messages });
      return { results: messages.map(() => ({ offset: null, error: null })) };
    } catch (error) {
      const code = error.code ?? error.cause?.code ?? String(error);
      return { results: messages.map(() => ({ offset: null, error: code })) };
    }
  });
};

// Headers are an object; repeated headers are an array.
const headersOf = (record) => {
  const headers = {};
  for (const [name, content] of record.headers) {
    const value = unpack(content);
    headers[name] = name in headers ? [headers[name], value].flat() : value;
  }
  return headers;
};

const stream = (request) =>
  withProducer(request, true, async (producer) => {
    const deadline = Date.now() + STREAM_LIMIT_MS;
    let sent = 0;
    let acked = 0;
    const failed = [];
    while (!fs.existsSync(request.until) && Date.now() < deadline) {
      await sleep(1);
      const value = String(sent++);
      try {
        await producer.send({ topic: request.topic, messages: [{ partition: 0, value }] });
        acked++;
        if (acked % PROGRESS_EVERY === 0) {
          say({ progress: acked });
        }
      } catch (error) {
        failed.push(String(error));
      }
    }
    return { sent, acked, failed: failed.slice(0, 5) };
  });

let admin = null;
let adminOf = null;

const connected = async (request) => {
  if (adminOf !== request.bootstrap) {
    adminOf = request.bootstrap;
    admin = kafka(request).admin();
    await admin.connect();
  }
  return admin;
};

const offsets = async (request) => {
  const client = await connected(request);
  const [edges] = (await client.fetchTopicOffsets(request.topic)).filter((each) => each.partition === request.partition);
  const [at] = (await client.fetchTopicOffsetsByTimestamp(request.topic, request.timestamp)).filter(
    (each) => each.partition === request.partition,
  );
  return { earliest: Number(edges.low), latest: Number(edges.high), at: Number(at.offset) };
};

const createTopic = async (request) => {
  const configEntries = Object.entries(request.configs).map(([name, value]) => ({ name, value }));
  const topic = { topic: request.topic, numPartitions: request.partitions, replicationFactor: 1, configEntries };
  await (await connected(request)).createTopics({ topics: [topic], waitForLeaders: true });
  return {};
};

const topics = async (request) => {
  const client = await connected(request);
  const found = await client.fetchTopicMetadata({ topics: await client.listTopics() });
  return { topics: Object.fromEntries(found.topics.map((topic) => [topic.name, topic.partitions.length])) };
};

const describeConfigs = async (request) => {
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: request.topic }];
  const found = await (await connected(request)).describeConfigs({ resources, includeSynonyms: false });
  const entries = found.resources[0].configEntries;
  return { configs: Object.fromEntries(entries.map((entry) => [entry.configName, entry.configValue])) };
};

const alterConfigs = async (request) => {
  const configEntries = Object.entries(request.configs).map(([name, value]) => ({ name, value }));
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: request.topic, configEntries }];
  await (await connected(request)).alterConfigs({ resources, validateOnly: false });
  return {};
};

const createPartitions = async (request) => {
  const topicPartitions = [{ topic: request.topic, count: request.partitions }];
  await (await connected(request)).createPartitions({ topicPartitions });
  return {};
};

const deleteRecords = async (request) => {
  const partitions = [{ partition: request.partition, offset: String(request.offset) }];
  const client = await connected(request);
  await client.fetchTopicOffsets(request.topic); // kafkajs knows leaders only of topics that it has requested before
  await client.deleteTopicRecords({ topic: request.topic, partitions });
  return {};
};

const deleteTopic = async (request) => {
  await (await connected(request)).deleteTopics({ topics: [request.topic] });
  return {};
};

const cluster = async (request) => {
  const found = await (await connected(request)).describeCluster();
  return { cluster_id: found.clusterId, brokers: found.brokers.map(({ host, port }) => `${host}:${port}`) };
};

const OPERATIONS = {
  version: async () => ({ version: require('kafkajs/package.json').version }),
  produce,
  stream,
  offsets,
  create_topic: createTopic,
  topics,
  describe_configs: describeConfigs,
  alter_configs: alterConfigs,
  create_partitions: createPartitions,
  delete_records: deleteRecords,
  delete_topic: deleteTopic,
  cluster,
  ...require('./transactions')(kafka, say),
};

const answer = async (request) => {
  try {
    const operation = OPERATIONS[request.op];
    if (operation === undefined) {
      throw new Unsupported('kafkajs reads in consumer groups only');
    }
    return await operation(request);
  } catch (error) {
    return error instanceof Unsupported ? { unsupported: error.message } : { error: String(error) };
  }
};

const main = async () => {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    say(await answer(JSON.parse(line)));
  }
  process.exit(0);
};

main();
