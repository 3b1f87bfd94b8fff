package host

import (
	"context"
	"net/http"
	"strings"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// CommentOnLine begins a discussion on an added line. GitLab wants the commits of the request's latest version.
func (h *gitLab) CommentOnLine(ctx context.Context, repository string, request PullRequest, at Line, text string) (Thread, error) {
	if request.diff.base == "" || request.diff.start == "" || request.diff.head == "" { // a new request, for some seconds
		return Thread{}, &Error{Kind: Failed, Text: "GitLab has not compared the branches of the merge request yet: try again later"}
	}
	position := &gitlab.PositionOptions{
		PositionType: gitlab.Ptr("text"), BaseSHA: &request.diff.base, StartSHA: &request.diff.start, HeadSHA: &request.diff.head,
		OldPath: &at.Path, NewPath: &at.Path, NewLine: &at.Line,
	}
	discussion, response, err := h.client.Discussions.CreateMergeRequestDiscussion(repository, request.Number,
		&gitlab.CreateMergeRequestDiscussionOptions{Body: &text, Position: position}, gitlab.WithContext(ctx))
	if response != nil && response.StatusCode == http.StatusBadRequest && isOutside(err.Error(), "line_code", "position") {
		return Thread{}, &Error{Kind: Outside, Text: "the merge request does not add this line", cause: err}
	}
	if err != nil {
		return Thread{}, gitLabError(err)
	}
	return gitLabThread(discussion)
}

func gitLabThread(discussion *gitlab.Discussion) (Thread, error) {
	if discussion == nil || discussion.ID == "" || len(discussion.Notes) == 0 || discussion.Notes[0] == nil || discussion.Notes[0].ID == 0 {
		return Thread{}, malformed("the host's answer is not a discussion of GitLab", nil)
	}
	return Thread{ID: discussion.ID, Note: discussion.Notes[0].ID}, nil
}

// FindThread reads the discussions of the merge request.
func (h *gitLab) FindThread(ctx context.Context, repository string, number int64, text string) (Thread, error) {
	pages := paged(func(page int) ([]*gitlab.Discussion, int, error) {
		list, response, err := h.client.Discussions.ListMergeRequestDiscussions(repository, number, &gitlab.ListMergeRequestDiscussionsOptions{
			ListOptions: gitlab.ListOptions{Page: int64(page), PerPage: pageSize},
		}, gitlab.WithContext(ctx))
		if err != nil {
			return nil, 0, gitLabError(err)
		}
		return list, nextComments(page, int(response.NextPage)), nil
	})
	for discussion, err := range pages {
		if err != nil {
			return Thread{}, err
		}
		thread, err := gitLabThread(discussion)
		if err != nil || strings.Contains(discussion.Notes[0].Body, text) {
			return thread, err
		}
	}
	return Thread{}, nil
}

// EditThread replaces the text of the note.
func (h *gitLab) EditThread(ctx context.Context, repository string, number int64, thread Thread, text string) error {
	_, err := gitLabAnswer(h.client.Discussions.UpdateMergeRequestDiscussionNote(repository, number, thread.ID, thread.Note,
		&gitlab.UpdateMergeRequestDiscussionNoteOptions{Body: &text}, gitlab.WithContext(ctx)))
	return err
}

// ResolveThread resolves the discussion.
func (h *gitLab) ResolveThread(ctx context.Context, repository string, number int64, thread Thread, resolved bool) error {
	_, err := gitLabAnswer(h.client.Discussions.ResolveMergeRequestDiscussion(repository, number, thread.ID,
		&gitlab.ResolveMergeRequestDiscussionOptions{Resolved: &resolved}, gitlab.WithContext(ctx)))
	return err
}
