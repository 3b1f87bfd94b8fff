// Package secret encrypts stored values that the server must read again, such as the private keys of its token issuer
// and the credentials of source code hosts. A copy of the database alone reveals none of them.
//
// The sealing key is a Tink keyset (AES-256-GCM) in a file outside the database. Every node of a server needs the same
// file. The store holds one sealed constant. It reveals a start with another key before anything is written with it.
package secret
