// Package testpb is generated from codectest.proto: messages with a field of every kind and with every option,
// for the tests of protoc-gen-go-json.
package testpb

//go:generate go test . -run TestGeneratedCodeIsCurrent -update
