package jsonappend

import (
	"bytes"
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Appender is implemented by messages with a generated codec.
type Appender interface {
	proto.Message
	// AppendJSON appends the message as one JSON object; nil is {}.
	AppendJSON(b []byte) []byte
}

// foreign encodes messages of other packages. Their protos have none of our options.
var foreign = protojson.MarshalOptions{EmitDefaultValues: true, AllowPartial: true}

// Message appends m with its generated codec. Messages without one (of third-party packages, such as google.rpc.Status)
// use protojson, which is slower. A message that protojson rejects, for example for invalid UTF-8, becomes {}.
func Message(b []byte, m proto.Message) []byte {
	if own, ok := m.(Appender); ok {
		return own.AppendJSON(b)
	}
	encoded, err := foreign.Marshal(m)
	if err != nil {
		return append(b, "{}"...)
	}
	return appendCompact(b, encoded)
}

// Foreign is Message with the signature for List and the maps.
func Foreign[M proto.Message](b []byte, m M) []byte {
	return Message(b, m)
}

// appendCompact appends src without the random spaces that protojson inserts to keep callers from relying on its bytes.
func appendCompact(b, src []byte) []byte {
	buf := bytes.NewBuffer(b)
	if err := json.Compact(buf, src); err != nil {
		return append(b, "{}"...)
	}
	return buf.Bytes()
}

// Any appends the packed message with "@type" first. An unregistered type, or content that cannot be parsed, leaves
// only "@type"; an empty Any is {}.
func Any(b []byte, a *anypb.Any) []byte {
	if a.GetTypeUrl() == "" {
		return append(b, "{}"...)
	}
	packed, err := a.UnmarshalNew()
	if err != nil {
		return appendTypeOnly(b, a.GetTypeUrl())
	}
	if own, ok := packed.(Appender); ok {
		return appendTyped(b, a.GetTypeUrl(), own)
	}
	encoded, err := foreign.Marshal(a)
	if err != nil {
		return appendTypeOnly(b, a.GetTypeUrl())
	}
	return appendCompact(b, encoded)
}

func appendTypeOnly(b []byte, typeURL string) []byte {
	b = append(b, `{"@type":`...)
	b = String(b, typeURL)
	return append(b, '}')
}

// appendTyped appends own with "@type" as the first member of its object.
func appendTyped(b []byte, typeURL string, own Appender) []byte {
	b = appendTypeOnly(b, typeURL)
	end := len(b) - 1
	b = own.AppendJSON(b[:end])
	if b[end+1] == '}' {
		return slices.Delete(b, end, end+1)
	}
	b[end] = ','
	return b
}
