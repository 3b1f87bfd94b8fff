// Package notifications sends notifications through the channels of notification rules, and shows them inside the
// application.
//
// An event is written by the transaction that stores its subject (see outbox). One job per node turns events into rows
// of the ledger (deliveries, one per message and rule) and sends the due ones. The ledger is the only state: a node
// leases rows for a limited time, and rows without an outcome by then are leased again. So each message is delivered at
// least once, always with the same id, even if processes are killed.
package notifications
