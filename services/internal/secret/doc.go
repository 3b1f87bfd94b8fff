// Package secret seals what the server must read again, such as the private keys of its token issuer and the
// credentials of source code hosts, so that a copy of the database alone gives nothing away.
//
// The sealing key is a Tink keyset (AES-256-GCM) in a file beside, not in, the database. Every node of a server needs
// the same file. The store holds one sealed constant by which a start with another key is noticed before anything is
// written with it.
package secret
