package gateway

import "testing"

func TestTranslate(t *testing.T) {
	g := &gateway{spellings: []Spelling{
		{Contract: "/api/n/{}/cloud-posture/{}", Original: "/api/n/{}/wiz/{}"},
		{Contract: "/api/{}/b", Original: "/api/c/{}"},
	}}
	for path, want := range map[string]string{
		"/api/n/7/wiz/9":           "/api/n/7/cloud-posture/9",
		"/api/n/wiz/wiz/wiz":       "/api/n/wiz/cloud-posture/wiz",
		"/api/n/7/wiz":             "/api/n/7/wiz",
		"/api/n/7/wiz/9/x":         "/api/n/7/wiz/9/x",
		"/api/n/7/cloud-posture/9": "/api/n/7/cloud-posture/9",
		"/api/c/x%20y":             "/api/x%20y/b",
		"":                         "",
	} {
		if got := g.inContract(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
