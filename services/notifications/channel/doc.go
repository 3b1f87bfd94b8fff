// Package channel sends one notification to one receiver: a webhook, a Slack incoming webhook, e-mail, or an S3 bucket.
// It does not use the database or the queue: the caller decides what to send, when and how often.
//
// All connections use the egress guard. Error texts are for the people who configured the receiver, so they do not
// describe the server's network.
package channel
