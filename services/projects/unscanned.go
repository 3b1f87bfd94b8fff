package projects

import (
	"context"
	"fmt"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scan"
)

// warningHeader is the metadata key of the response header with what the caller should know about a change.
const warningHeader = "x-warning"

// warnUnscanned tells the caller who set a primary branch that no scan has it. Clients set it before the first scan, so
// it is accepted. But until then, lists of the primary branch are empty.
func warnUnscanned(ctx context.Context, tx *ent.Tx, row *ent.Project) error {
	if row.PrimaryBranch == "" {
		return nil
	}
	scanned, err := tx.Scan.Query().Where(scan.ProjectID(row.ID), scan.Ref(row.PrimaryBranch)).Exist(ctx)
	if err != nil || scanned {
		return err
	}
	text := fmt.Sprintf("no scan has the branch %s: findings of the primary branch are empty until one does", strconv.QuoteToASCII(row.PrimaryBranch))
	return grpc.SetHeader(ctx, metadata.Pairs(warningHeader, text))
}
