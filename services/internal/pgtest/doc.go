// Package pgtest gives each test its own empty PostgreSQL database.
//
// It uses the server in PALISADE_TEST_POSTGRES, which `make test` sets. Without it (a plain `go test` of one
// package) it starts a temporary cluster with .ci/with-postgres, once per test program. The cluster stops with the
// program, however the program ends.
package pgtest
