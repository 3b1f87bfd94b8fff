package list

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent/tenant"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/access"
)

// listKey identifies a list: the deployment, the caller, the visibility of the caller, and the filter.
type listKey struct {
	deploymentID int64
	digest       [sha256.Size]byte
}

// keyOf returns the key of the requested list. The number and the size of the page are not part of it.
func keyOf(ctx context.Context, r *findingsv1.ListFindingsRequest) (listKey, error) {
	deploymentID, _ := tenant.FromContext(ctx)
	caller := ""
	if p, ok := access.FromContext(ctx); ok {
		caller = fmt.Sprintf("%v/%d/%s", p.Kind, p.ID, tenant.Visibility(ctx))
	}
	list := proto.CloneOf(r)
	list.Page, list.PageSize = 0, nil
	canonical, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	return newListKey(deploymentID, caller, canonical), err
}

func newListKey(deploymentID int64, caller string, filter []byte) listKey {
	h := sha256.New()
	var n [8]byte
	binary.LittleEndian.PutUint64(n[:], uint64(len(caller)))
	h.Write(n[:])
	h.Write([]byte(caller))
	h.Write(filter)
	return listKey{deploymentID, [sha256.Size]byte(h.Sum(nil))}
}
