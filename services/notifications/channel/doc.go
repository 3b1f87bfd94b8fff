// Package channel sends one notification to one receiver: a webhook, a Slack incoming webhook, e-mail, or an S3 bucket.
// It knows neither the database nor the queue: who sends what when, and how often, is decided by its caller.
//
// Everything goes out through the egress guard. The texts of errors are for the people who configured the receiver:
// nothing in them tells what is in the network of the server.
package channel
