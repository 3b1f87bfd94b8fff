package platform

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/palisade/palisade/ent"
	platformv1 "github.com/palisade/palisade/gen/palisade/platform/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// AuditEntryOf converts a stored entry to the API's form. The command line export uses it too.
func AuditEntryOf(row *ent.AuditEntry) (*platformv1.AuditEntry, error) {
	out := &platformv1.AuditEntry{
		Id: row.ID, Sequence: row.Sequence, At: timestamppb.New(store.Time(row.At)),
		Actor:  &platformv1.AuditActor{Kind: row.ActorKind, Id: row.ActorID, Name: row.ActorName, UserId: row.UserID},
		Method: row.Method, Code: row.Code, RequestId: row.RequestID, Remote: row.Remote, Request: row.Request,
		PreviousHash: hex.EncodeToString(row.PreviousHash), Hash: hex.EncodeToString(row.Hash),
	}
	for _, change := range row.Changes {
		before, err := object(change.Before)
		if err != nil {
			return nil, fmt.Errorf("audit entry %d: %w", row.ID, err)
		}
		after, err := object(change.After)
		if err != nil {
			return nil, fmt.Errorf("audit entry %d: %w", row.ID, err)
		}
		out.Changes = append(out.Changes, &platformv1.AuditChange{Kind: change.Kind, Id: change.ID, Before: before, After: after})
	}
	return out, nil
}

// object returns nil if a change has no such side.
func object(text json.RawMessage) (*structpb.Struct, error) {
	if len(text) == 0 {
		return nil, nil
	}
	out := &structpb.Struct{}
	return out, protojson.Unmarshal(text, out)
}
