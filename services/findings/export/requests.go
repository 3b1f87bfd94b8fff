package export

import (
	"fmt"

	"github.com/palisade/palisade/ent"
	storev1 "github.com/palisade/palisade/gen/palisade/store/v1"
	"github.com/palisade/palisade/services/findings/triage"
	"github.com/palisade/palisade/services/internal/store"
)

// The words of exception requests.
var (
	requestStates  = []string{triage.Requested, triage.Approved, triage.Rejected}
	requestSources = []string{triage.SourceComment, triage.SourcePlatform, triage.SourceAPI}
)

// creatorsOf are the creators of the tokens that requested exceptions.
func creatorsOf(requests []*ent.ExceptionRequest) (list []actor) {
	for _, r := range requests {
		if r.RequesterKind == "token" && r.RequesterUserID != 0 {
			list = append(list, actor{"user", r.RequesterUserID})
		}
	}
	return list
}

// requestRecords are the records of exception requests. The decision that answered a request has no record: an import
// cannot undo it.
func requestRecords(requests []*ent.ExceptionRequest, names map[actor]string) (list []*storev1.ExportedExceptionRequest) {
	for _, r := range requests {
		record := &storev1.ExportedExceptionRequest{
			State: r.State, Source: r.Source, Reason: r.Reason, Note: r.Note,
			RequesterKind: r.RequesterKind, Requester: r.RequesterLogin, RequesterName: r.RequesterName, CreatedAt: timestamp(r.CreatedAt),
			ReviewerKind: r.ReviewerKind, Reviewer: r.ReviewerLogin, ReviewerName: r.ReviewerName, ReviewNote: r.ReviewNote,
			ReviewedAt: store.Timestamp(r.ReviewedAt),
		}
		if r.RequesterKind == "token" {
			record.RequesterCreator = names[actor{"user", r.RequesterUserID}]
		}
		list = append(list, record)
	}
	return list
}

// request keeps the names of a requester and a reviewer who are not here.
func (i *importer) request(tx *ent.Tx, of *ent.Finding, r *storev1.ExportedExceptionRequest) *ent.ExceptionRequestCreate {
	requester := i.actors[actorName{r.GetRequesterKind(), r.GetRequester()}]
	userID := requester
	if r.GetRequesterKind() != "user" {
		userID = i.actors[actorName{"user", r.GetRequesterCreator()}]
	}
	return tx.ExceptionRequest.Create().SetDeploymentID(i.deploymentID).SetProjectID(of.ProjectID).SetFindingID(of.ID).SetState(r.GetState()).
		SetSource(r.GetSource()).SetReason(r.GetReason()).SetNote(r.GetNote()).SetRequesterKind(r.GetRequesterKind()).SetRequesterID(requester).
		SetRequesterUserID(userID).SetRequesterLogin(r.GetRequester()).SetRequesterName(r.GetRequesterName()).SetCreatedAt(micros(r.GetCreatedAt())).
		SetReviewerKind(r.GetReviewerKind()).SetReviewerID(i.actors[actorName{r.GetReviewerKind(), r.GetReviewer()}]).
		SetReviewerLogin(r.GetReviewer()).SetReviewerName(r.GetReviewerName()).SetReviewNote(r.GetReviewNote()).
		SetNillableReviewedAt(optionalMicros(r.GetReviewedAt()))
}

func (c *checks) requests(list []*storev1.ExportedExceptionRequest) {
	open := 0
	for n, r := range list {
		prefix := fmt.Sprintf("exceptionRequests[%d].", n)
		c.word(prefix+"state", r.GetState(), requestStates)
		c.word(prefix+"source", r.GetSource(), requestSources)
		c.word(prefix+"reason", r.GetReason(), reasons)
		c.word(prefix+"requesterKind", r.GetRequesterKind(), actorKinds)
		c.time(prefix+"createdAt", r.GetCreatedAt())
		c.text(prefix+"note", r.GetNote(), 0, maxComment)
		c.text(prefix+"reviewNote", r.GetReviewNote(), 0, maxComment)
		c.text(prefix+"requester", r.GetRequester(), 0, maxName)
		c.text(prefix+"requesterName", r.GetRequesterName(), 0, maxName)
		c.text(prefix+"requesterCreator", r.GetRequesterCreator(), 0, maxName)
		c.text(prefix+"reviewer", r.GetReviewer(), 0, maxName)
		c.text(prefix+"reviewerName", r.GetReviewerName(), 0, maxName)
		c.that((r.GetState() == triage.Requested) == (r.GetReviewedAt() == nil), "%sreviewedAt must be set unless the request is open", prefix)
		if r.GetReviewedAt() == nil {
			open++
			continue
		}
		c.time(prefix+"reviewedAt", r.GetReviewedAt())
		c.word(prefix+"reviewerKind", r.GetReviewerKind(), actorKinds)
	}
	c.that(open < 2, "exceptionRequests: only one may be open, %d are", open)
}
