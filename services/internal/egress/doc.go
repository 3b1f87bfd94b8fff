// Package egress guards all outbound connections: every call to another host goes through its [Guard]. Tenants choose
// many of these hosts (webhook receivers, source-code hosts, buckets). Without the guard they could reach the server's
// internal network.
//
// The guard checks the address before connecting, not the name, so names, redirects and changed DNS answers all pass
// the same check. It permits public addresses only, unless the operator's allow list names the host or the address.
// Every call has a timeout that closes its connection, and a limit of what is read. docs/decisions/0009-egress.md gives
// the reasons and what the guard does not protect from.
package egress
