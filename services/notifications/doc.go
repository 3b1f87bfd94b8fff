// Package notifications tells people what happened: over the channels of notification rules, and inside the
// application.
//
// What happened is an event, written by the transaction that stores it (see outbox). A job, of which one runs on each
// node, turns events into rows of the ledger (deliveries, one for each message and rule) and sends what is due. The
// ledger alone is the truth: a node takes rows for a limited time, and what it does not answer for by then is taken
// again. So a message arrives at least once, always with the same id, whatever is killed when.
package notifications
