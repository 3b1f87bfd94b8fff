// Package pgtest gives each test an empty PostgreSQL database of its own.
//
// It uses the server named by PALISADE_TEST_POSTGRES, which `make test` sets. Without it (a plain `go test` of one
// package) it starts a throw-away cluster with .ci/with-postgres, once for the test program, and the cluster ends with
// that program however the program ends.
package pgtest
