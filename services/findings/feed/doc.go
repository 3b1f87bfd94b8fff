// Package feed reads the changes of findings in an order that skips none, and shares what it reads among all watchers
// of a deployment on a node.
//
// On SQLite transactions commit one after another, so ids are the order. On PostgreSQL an event may become visible
// after events with higher ids. So each event has the number of its transaction, and a position in the feed is a
// snapshot: the transactions whose events were visible at a reading. The next reading takes a new snapshot and selects
// the events of the transactions that only the new one contains. A transaction that stays open delays its own events
// and no others.
package feed
