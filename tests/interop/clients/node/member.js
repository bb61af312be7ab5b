// A group member on kafkajs; tests/support/groups/group_member.py specifies its behavior. Its only assignor is its own.

'use strict';

const { Kafka, logLevel } = require('kafkajs');

const [bootstrap, groupId, topic] = process.argv.slice(2);
const retry = { retries: 1000, initialRetryTime: 100, maxRetryTime: 500 };
const kafka = new Kafka({ clientId: 'member', brokers: [bootstrap], logLevel: logLevel.ERROR, retry });
const consumer = kafka.consumer({ groupId, sessionTimeout: 6000, heartbeatInterval: 300, maxWaitTimeInMs: 200, retry });

const eachMessage = async ({ partition, message }) => {
  console.log(`got ${message.value}`);
  const offset = String(BigInt(message.offset) + 1n);
  try {
    await consumer.commitOffsets([{ topic, partition, offset }]);
  } catch (error) {
    if (error.type !== 'UNKNOWN_MEMBER_ID' && error.type !== 'ILLEGAL_GENERATION') {
      console.error(String(error));
    }
  }
};

const main = async () => {
  process.once('SIGTERM', async () => {
    await consumer.disconnect();
    process.exit(0);
  });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await consumer.run({ autoCommit: false, eachMessage });
};

main();
