package scm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
	"github.com/palisade/palisade/services/internal/access"
	"github.com/palisade/palisade/services/internal/apitest"
)

func contentPath(deploymentID int64, more string) string {
	return fmt.Sprintf("/api/deployments/%d/scm_comment_product_content%s", deploymentID, more)
}

// content is a request body for a product.
func content(text, product string) string {
	quoted, _ := json.Marshal(text)
	return fmt.Sprintf(`{"reviewCommentProductContent":{"contentType":"REVIEW_COMMENT_CONTENT_TYPE_ADDENDUM","content":%s,"productContent":{"productType":%q}}}`, quoted, product)
}

// idOf returns the id in an answer.
func idOf(t testing.TB, body string) string {
	t.Helper()
	var answer struct {
		ReviewCommentProductContent struct{ ID string }
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || answer.ReviewCommentProductContent.ID == "" {
		t.Fatalf("%s: %v", body, err)
	}
	return answer.ReviewCommentProductContent.ID
}

func TestReviewCommentContent(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := configCaller{Server: server}
		path := func(more string) string { return contentPath(s.DeploymentID, more) }
		apitest.Golden(t, "list_review_comment_content_none", s.Get(t, path("")))
		body := s.do(t, http.MethodPost, path(""), content("See **wiki/appsec**", "PRODUCT_SAST"), 200)
		apitest.Golden(t, "create_review_comment_content", body)
		id := idOf(t, body)
		secrets := idOf(t, s.do(t, http.MethodPost, path(""), `{"reviewCommentProductContent":{"id":"77","content":"x","productContent":{"productType":"PRODUCT_SECRETS"}}}`, 200))
		s.do(t, http.MethodPost, path(""), content("again", "PRODUCT_SAST"), 409)
		s.do(t, http.MethodPut, path("/"+secrets), content("moved", "PRODUCT_SAST"), 409)
		// Ids in the body are ignored.
		update := strings.Replace(content(strings.Repeat("ü", 10_000), "PRODUCT_SCA"), `{"review`,
			fmt.Sprintf(`{"deploymentId":"999","reviewCommentProductContentId":%q,"review`, secrets), 1)
		s.do(t, http.MethodPut, path("/"+id), strings.Replace(update, `{"contentType"`, `{"id":"999","contentType"`, 1), 200)
		body = s.do(t, http.MethodPut, path("/"+id), content("Ask #appsec", "PRODUCT_SCA"), 200)
		apitest.Golden(t, "update_review_comment_content", body)
		for _, product := range []string{"", `,"productContent":{}`, `,"productContent":null`, `,"productContent":{"productType":"PRODUCT_UNSPECIFIED"}`} {
			kept := s.do(t, http.MethodPut, path("/"+id), `{"reviewCommentProductContent":{"content":"Ask #appsec"`+product+`}}`, 200)
			if kept != body {
				t.Errorf("with%s the product is not kept: %s", product, kept)
			}
		}
		numeric, _ := strconv.ParseInt(id, 10, 64)
		kept, err := scmv1.NewReviewCommentProductContentServiceClient(s.Conn).UpdateReviewCommentProductContent(s.Context(t, s.Token),
			&scmv1.UpdateReviewCommentProductContentRequest{
				DeploymentId: s.DeploymentID, ReviewCommentProductContentId: numeric,
				ReviewCommentProductContent: &scmv1.ReviewCommentContent{Content: "Ask #appsec", ProductContent: &scmv1.ProductContent{}},
			})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, kept, body)
		list := s.Get(t, path(""))
		apitest.Golden(t, "list_review_comment_content", list)
		answer, err := scmv1.NewReviewCommentProductContentServiceClient(s.Conn).ListReviewCommentProductContent(s.Context(t, s.Token),
			&scmv1.ListReviewCommentProductContentRequest{DeploymentId: s.DeploymentID})
		if err != nil {
			t.Fatal(err)
		}
		apitest.Same(t, answer, list)
		apitest.Golden(t, "delete_review_comment_content", s.do(t, http.MethodDelete, path("/"+id), "", 200))
		s.do(t, http.MethodDelete, path("/"+id), "", 404)
		s.do(t, http.MethodPut, path("/"+id), content("gone", "PRODUCT_SCA"), 404)
	})
}

func TestReviewCommentContentInvalid(t *testing.T) {
	t.Parallel()
	apitest.Each(t, func(t *testing.T, server *apitest.Server) {
		s := configCaller{Server: server}
		path := func(more string) string { return contentPath(s.DeploymentID, more) }
		id := idOf(t, s.do(t, http.MethodPost, path(""), content("kept", "PRODUCT_SAST"), 200))
		for _, body := range []string{
			``, `{}`, `{"reviewCommentProductContent":{}}`,
			`{"reviewCommentProductContent":{"productContent":{"productType":"PRODUCT_SCA"}}}`,
			content("", "PRODUCT_SCA"), content(" \n", "PRODUCT_SCA"), content("a\x00b", "PRODUCT_SCA"), content(strings.Repeat("ü", 10_001), "PRODUCT_SCA"),
			content("x", "PRODUCT_DAST"),
			strings.Replace(content("x", "PRODUCT_SCA"), "_ADDENDUM", "_TITLE", 1),
		} {
			s.do(t, http.MethodPost, path(""), body, 400)
			s.do(t, http.MethodPut, path("/"+id), body, 400)
		}
		for _, product := range []string{"", `,"productContent":{}`, `,"productContent":{"productType":"PRODUCT_UNSPECIFIED"}`} {
			body := s.do(t, http.MethodPost, path(""), `{"reviewCommentProductContent":{"content":"x"`+product+`}}`, 400)
			if !strings.Contains(body, "productType is required") {
				t.Error(body)
			}
		}
		globex := s.AddTenant(t, "globex")
		for _, token := range []string{globex.Token} {
			s.Body(t, token, http.MethodPut, contentPath(globex.DeploymentID, "/"+id), content("theirs", "PRODUCT_SAST"), 404)
			s.Body(t, token, http.MethodDelete, contentPath(globex.DeploymentID, "/"+id), "", 404)
			s.Body(t, token, http.MethodPut, path("/"+id), content("theirs", "PRODUCT_SAST"), 404)
		}
		if body := s.Body(t, globex.Token, http.MethodGet, contentPath(globex.DeploymentID, ""), "", 200); body != `{"reviewCommentContents":[]}` {
			t.Error(body)
		}
		member := s.AddToken(t, s.Tenant, access.TokenSpec{Role: access.RoleMember})
		s.Body(t, member, http.MethodGet, path(""), "", 200)
		s.Body(t, member, http.MethodPut, path("/"+id), content("x", "PRODUCT_SAST"), 403)
		if row := s.Store.Reader.ReviewCommentContent.Query().OnlyX(s.System(t)); row.Content != "kept" {
			t.Errorf("content %q", row.Content)
		}
	})
}
