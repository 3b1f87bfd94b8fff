package scans

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/scananswer"
	"github.com/palisade/palisade/ent/tenant"
	scansv1 "github.com/palisade/palisade/gen/palisade/scans/v1"
	"github.com/palisade/palisade/services/internal/store"
	"github.com/palisade/palisade/services/scans/ingest"
)

const (
	// answerAge is how long the answer to an upload is kept. Lists of scans go back as far.
	answerAge = searchWindow
	// maxAnswerText is the length in bytes at which a text of a stored answer is cut. An answer has at most 1,000 skipped
	// results, so it has at most some megabytes, and compressed some kilobytes.
	maxAnswerText = 1000
)

// storeAnswer stores the answer to an upload.
func storeAnswer(ctx context.Context, tx *ent.Tx, row *ent.Scan, answer *scansv1.UploadReportResponse) error {
	stored := proto.CloneOf(answer)
	for _, skipped := range stored.GetSkippedResults() {
		skipped.RuleId, skipped.Path, skipped.Reason = cutText(skipped.GetRuleId()), cutText(skipped.GetPath()), cutText(skipped.GetReason())
	}
	content, err := ingest.Compress(stored)
	if err != nil {
		return err
	}
	return tx.ScanAnswer.Create().SetDeploymentID(row.DeploymentID).SetProjectID(row.ProjectID).SetScanID(row.ID).SetContent(content).SetAt(row.StartedAt).
		Exec(ctx)
}

func cutText(s string) string {
	if len(s) <= maxAnswerText {
		return s
	}
	return strings.ToValidUTF8(s[:maxAnswerText], "") + " …"
}

// answerOf reads the answer to an upload; nil if it is not kept.
func answerOf(ctx context.Context, db *ent.Client, row *ent.Scan) (*scansv1.UploadReportResponse, error) {
	stored, err := db.ScanAnswer.Query().Where(scananswer.ProjectID(row.ProjectID), scananswer.ScanID(row.ID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	answer := &scansv1.UploadReportResponse{}
	if err := ingest.Decompress(stored.Content, answer); err != nil {
		return nil, fmt.Errorf("answer to the upload of scan %d: %w", row.ID, err)
	}
	return answer, nil
}

// purgeAnswers deletes answers from before a time in all deployments, and returns their number.
func purgeAnswers(ctx context.Context, st *store.Store, before time.Time) (n int, err error) {
	err = st.Write(tenant.System(ctx), func(ctx context.Context, tx *ent.Tx) error {
		n, err = tx.ScanAnswer.Delete().Where(ofEveryDeployment, scananswer.AtLT(store.Micros(before))).Exec(ctx)
		return err
	})
	return n, err
}
