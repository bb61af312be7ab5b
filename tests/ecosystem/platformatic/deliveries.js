// A producer and a consumer on @platformatic/kafka: see tests/support/ecosystem/exchange.py for what each must do.
//
//   deliveries.js produce BOOTSTRAP TOPIC COUNT
//   deliveries.js consume BOOTSTRAP TOPIC GROUP
import { setTimeout } from 'node:timers/promises'
import { Consumer, Producer, stringDeserializers, stringSerializers } from '@platformatic/kafka'

const [mode, bootstrap, topic, last] = process.argv.slice(2)
const connection = { clientId: 'deliveries', bootstrapBrokers: [bootstrap], retryDelay: 250 }

async function produce(count) {
  const producer = new Producer({ ...connection, retries: 60, serializers: stringSerializers })
  for (let number = 0; number < count; number++) {
    await producer.send({ messages: [{ topic, key: `${number}`, value: `record ${number}` }] })
    await setTimeout(2)
  }
  await producer.close()
}

async function consume(groupId) {
  const consumer = new Consumer({
    ...connection,
    groupId,
    deserializers: stringDeserializers,
    // A member that was killed keeps its partitions until its session times out.
    sessionTimeout: 6000,
    heartbeatInterval: 500
  })
  try {
    const stream = await consumer.consume({
      topics: [topic],
      mode: 'committed',
      fallbackMode: 'earliest',
      autocommit: false
    })
    for await (const message of stream) {
      console.log(message.value)
      await message.commit()
    }
  } catch (error) {
    console.error(error.message)
    await consumer.close(true).catch(failure => console.error(failure.message))
  }
}

if (mode === 'produce') {
  await produce(Number(last))
} else {
  // The client cannot read the error of a fetch that tells the new leader epoch, as Kafka and Barnabas do after a
  // restart: it takes tagged fields for the next partition. The stream ends with an error, and a new consumer goes on.
  for (;;) {
    await consume(last)
    await setTimeout(250)
  }
}
