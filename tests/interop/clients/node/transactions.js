// Transactions of kafkajs; see ../python/loop.py.

'use strict';

const fs = require('node:fs');
const { setTimeout: sleep } = require('node:timers/promises');

const READ_ON_MS = 500;
const TIMEOUT_MS = 30_000;
const TRANSFORM_LIMIT_MS = 150_000;
const SESSION_MS = 6_000; // it has no static members: a killed one leaves by its session timeout

module.exports = (kafka, say) => {
  const instances = new Map();
  let readings = 0;

  const open = async (request) => {
    const producer = kafka(request).producer({
      transactionalId: request.transactional_id,
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
    });
    await producer.connect();
    // The client initializes its producer id at the first transaction; an older instance is to be fenced before that.
    await (await producer.transaction()).abort();
    return producer;
  };

  const begun = async (request) => {
    const found = instances.get(request.name);
    found.transaction ??= await found.producer.transaction();
    return found.transaction;
  };

  const txnOpen = async (request) => {
    instances.set(request.name, { producer: await open(request), transaction: null });
    return {};
  };

  const txnSend = async (request) => {
    const transaction = await begun(request);
    const messages = request.values.map((value) => ({ partition: request.partition, value }));
    await transaction.send({ topic: request.topic, messages });
    return {};
  };

  const txnOffsets = async (request) => {
    const transaction = await begun(request);
    const partitions = [{ partition: request.partition, offset: String(request.offset) }];
    await transaction.sendOffsets({ consumerGroupId: request.group, topics: [{ topic: request.topic, partitions }] });
    return {};
  };

  const txnEnd = async (request) => {
    const found = instances.get(request.name);
    const { transaction } = found;
    found.transaction = null;
    await (request.commit ? transaction.commit() : transaction.abort());
    return {};
  };

  const txnClose = async (request) => {
    await instances.get(request.name).producer.disconnect();
    instances.delete(request.name);
    return {};
  };

  const readValues = async (request) => {
    const groupId = `reading-${process.pid}-${readings++}`;
    const consumer = kafka(request).consumer({ groupId, readUncommitted: !request.committed, maxWaitTimeInMs: 100 });
    const values = [];
    let hasFetched = false;
    consumer.on(consumer.events.FETCH, () => {
      hasFetched = true;
    });
    await consumer.connect();
    await consumer.subscribe({ topic: request.topic, fromBeginning: true });
    const eachMessage = async ({ partition, message }) => {
      if (partition === request.partition) {
        values.push(String(message.value));
      }
    };
    await consumer.run({ autoCommit: false, eachMessage });
    const deadline = Date.now() + TIMEOUT_MS;
    while ((values.length < request.count || !hasFetched) && Date.now() < deadline) {
      await sleep(20);
    }
    await sleep(READ_ON_MS);
    await consumer.disconnect();
    return { values };
  };

  const transform = async (request) => {
    const deadline = Date.now() + TRANSFORM_LIMIT_MS;
    const progress = { sent: 0, failed: [] };
    const goesOn = () => !fs.existsSync(request.until) && Date.now() < deadline;
    while (goesOn()) {
      try {
        await transformUntilError(request, progress, goesOn);
      } catch (error) {
        console.error(error);
        progress.failed.push(String(error));
        await sleep(200);
      }
    }
    return { sent: progress.sent, failed: progress.failed.slice(-5) };
  };

  const transformUntilError = async (request, progress, goesOn) => {
    const producer = await open(request);
    const consumer = kafka(request).consumer({
      groupId: request.group,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: 300,
      maxWaitTimeInMs: 100,
    });
    let failure = null;
    const eachBatch = async ({ batch }) => {
      if (failure !== null || !goesOn()) {
        throw failure ?? new Error('stopping');
      }
      const { topic, partition, messages } = batch;
      try {
        const transaction = await producer.transaction();
        await transaction.send({
          topic: request.output,
          messages: messages.map(({ value }) => ({ partition, value })),
        });
        const offset = String(BigInt(batch.lastOffset()) + 1n);
        const topics = [{ topic, partitions: [{ partition, offset }] }];
        await transaction.sendOffsets({ consumerGroupId: request.group, topics });
        await transaction.commit();
      } catch (error) {
        failure = error;
        throw error;
      }
      progress.sent += messages.length;
      say({ progress: progress.sent });
    };
    try {
      await consumer.connect();
      await consumer.subscribe({ topic: request.topic, fromBeginning: true });
      await consumer.run({ autoCommit: false, partitionsConsumedConcurrently: 1, eachBatch });
      while (goesOn() && failure === null) {
        await sleep(20);
      }
    } finally {
      await consumer.disconnect();
      await producer.disconnect();
    }
    if (failure !== null) {
      throw failure;
    }
  };

  return {
    txn_open: txnOpen,
    txn_send: txnSend,
    txn_offsets: txnOffsets,
    txn_end: txnEnd,
    txn_close: txnClose,
    read_values: readValues,
    transform,
  };
};
