"""A queue on the server process that tests start for S3."""

from __future__ import annotations

import uuid

from s3_server import Bucket, S3Server


class Queue:
    """A queue of one test."""

    def __init__(self, server: S3Server) -> None:
        self.client = server.client("sqs")
        made = self.client.create_queue(QueueName=f"events-{uuid.uuid4().hex}")
        path = made["QueueUrl"].split("/", 3)[3]
        self.url = f"{server.direct_url}/{path}"

    def send(self, body: str) -> None:
        self.client.send_message(QueueUrl=self.url, MessageBody=body)

    def counts(self) -> tuple[int, int]:
        """Return how many messages wait, and how many are with somebody."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        found = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=names)
        waiting, taken = (int(found["Attributes"][name]) for name in names)
        return waiting, taken

    def get_notified_by(self, bucket: Bucket) -> None:
        arn = self.client.get_queue_attributes(QueueUrl=self.url, AttributeNames=["QueueArn"])
        bucket.server.client().put_bucket_notification_configuration(
            Bucket=bucket.name,
            NotificationConfiguration={
                "QueueConfigurations": [
                    {
                        "QueueArn": arn["Attributes"]["QueueArn"],
                        "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"],
                    }
                ]
            },
        )
