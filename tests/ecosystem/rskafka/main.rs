// A producer and a consumer on rskafka: see tests/support/ecosystem/exchange.py for what each must do.
//
//   deliveries produce BOOTSTRAP TOPIC COUNT
//   deliveries consume BOOTSTRAP TOPIC GROUP        (rskafka has no groups: it reads every partition from the start)
use std::{collections::BTreeMap, env, error::Error, sync::Arc, time::Duration};

use rskafka::{
    client::{
        partition::{Compression, PartitionClient, UnknownTopicHandling},
        Client, ClientBuilder,
    },
    record::Record,
    BackoffConfig,
};
use tokio::{task::JoinSet, time::sleep};

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().collect();
    let [_, mode, bootstrap, topic, last] = &arguments[..] else {
        return Err("expected a mode, an address, a topic, and a count or a group".into());
    };
    // By default a pause between attempts may grow to 500 s.
    let backoff = BackoffConfig { max_backoff: Duration::from_millis(500), ..Default::default() };
    let client = ClientBuilder::new(vec![bootstrap.clone()]).backoff_config(backoff).build().await?;
    let partitions = partitions(&client, topic).await?;
    match mode.as_str() {
        "produce" => produce(&partitions, last.parse()?).await,
        _ => consume(partitions).await,
    }
}

async fn partitions(client: &Client, topic: &str) -> Result<Vec<Arc<PartitionClient>>, Failure> {
    let topics = client.list_topics().await?;
    let found = topics.into_iter().find(|each| each.name == topic).ok_or("no such topic")?;
    let mut partitions = vec![];
    for number in found.partitions {
        let partition = client.partition_client(topic, number, UnknownTopicHandling::Retry).await?;
        partitions.push(Arc::new(partition));
    }
    Ok(partitions)
}

async fn produce(partitions: &[Arc<PartitionClient>], count: usize) -> Result<(), Failure> {
    for number in 0..count {
        let record = Record {
            key: None,
            value: Some(format!("record {number}").into_bytes()),
            headers: BTreeMap::new(),
            timestamp: chrono::Utc::now(),
        };
        partitions[number % partitions.len()].produce(vec![record], Compression::NoCompression).await?;
        sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

async fn consume(partitions: Vec<Arc<PartitionClient>>) -> Result<(), Failure> {
    let mut readers = JoinSet::new();
    for partition in partitions {
        readers.spawn(read(partition));
    }
    while let Some(ended) = readers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn read(partition: Arc<PartitionClient>) -> Result<(), Failure> {
    let mut offset = 0;
    loop {
        let (records, _high_watermark) = partition.fetch_records(offset, 1..1_000_000, 500).await?;
        for found in records {
            println!("{}", String::from_utf8(found.record.value.unwrap_or_default())?);
            offset = found.offset + 1;
        }
    }
}
