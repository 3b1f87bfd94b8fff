package issue

import (
	"context"
	"strings"

	entsql "entgo.io/ent/dialect/sql"

	"github.com/palisade/palisade/ent"
	"github.com/palisade/palisade/ent/exceptionrequest"
	findingsv1 "github.com/palisade/palisade/gen/palisade/findings/v1"
	"github.com/palisade/palisade/services/internal/store"
)

// exceptionRequested is the kind of the event of a request.
const exceptionRequested = "exception_requested"

// readExceptions reads the requests to ignore the rows, or findings of the same identities, oldest first.
func (a *relatedRows) readExceptions(ctx context.Context, db *ent.Client) error {
	stored, err := db.ExceptionRequest.Query().
		Where(func(s *entsql.Selector) {
			s.Where(store.InIDs(s.C(exceptionrequest.FieldFindingID), keys(a.identities)))
		}).
		Order(ent.Asc(exceptionrequest.FieldID)).All(ctx)
	for _, row := range stored {
		key := a.identities[row.FindingID]
		a.exceptions[key] = append(a.exceptions[key], row)
	}
	return err
}

// exceptionRequest is the latest request to ignore a finding; nil if there is none.
func (a *relatedRows) exceptionRequest(row *ent.Finding) *findingsv1.IssueExceptionRequestSummary {
	requests := a.exceptions[identityOf(row)]
	if len(requests) == 0 {
		return nil
	}
	last := requests[len(requests)-1]
	out := &findingsv1.IssueExceptionRequestSummary{
		ExceptionState: enumOf[findingsv1.FindingExceptionRequestState](findingsv1.FindingExceptionRequestState_value,
			"FINDING_EXCEPTION_REQUEST_STATE_", last.State),
		RequesterLogin: last.RequesterLogin, RequesterName: last.RequesterName, RequesterNote: last.Note,
		RequesterTriageReason: enumOf[findingsv1.FindingTriageReason](findingsv1.FindingTriageReason_value, "FINDING_TRIAGE_REASON_", last.Reason),
		RequesterActionSource: exceptionSource(last.Source), ReviewerLogin: last.ReviewerLogin, ReviewerName: last.ReviewerName,
		RequestId: last.ID, IssueId: last.FindingID, CreatedAt: timestamp(last.CreatedAt),
	}
	if last.ReviewID != nil {
		out.ReviewId = *last.ReviewID
	}
	if last.ReviewedAt != nil {
		out.ReviewedAt = timestamp(*last.ReviewedAt)
	}
	return out
}

// exceptionDetails says where the request of an event was made: the latest one at that time.
func (h *histories) exceptionDetails(e *ent.FindingEvent) *findingsv1.ExceptionRequestDetails {
	source := ""
	for _, request := range h.exceptions[h.identities[e.FindingID]] {
		if request.CreatedAt <= e.At {
			source = request.Source
		}
	}
	return &findingsv1.ExceptionRequestDetails{ActionSource: exceptionSource(source)}
}

// exceptionSource is the enum value of a stored source.
func exceptionSource(word string) findingsv1.FindingExceptionRequestSource {
	if word == "platform" {
		return findingsv1.FindingExceptionRequestSource_FINDING_EXCEPTION_REQUEST_SOURCE_SEMGREP_APPSEC_PLATFORM
	}
	return findingsv1.FindingExceptionRequestSource(
		findingsv1.FindingExceptionRequestSource_value["FINDING_EXCEPTION_REQUEST_SOURCE_"+strings.ToUpper(word)])
}
