// Package wirejson writes the JSON of a message from its protobuf encoding, without making the message.
//
// A list that is stored as protobuf passes through a server fastest as the bytes that it is: gRPC sends them, and this
// package turns them into just what the generated AppendJSON of the message would write, for about a third of the cost of
// decoding and writing it. What it does not know (maps, oneofs, well-known types but timestamps) it leaves to AppendJSON.
package wirejson
