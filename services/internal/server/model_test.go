package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/palisade/palisade/services/config"
	"github.com/palisade/palisade/services/internal/apitest"
	"github.com/palisade/palisade/services/internal/llm/llmtest"
)

// The server counts its model requests and makes none by itself.
func TestModelIsCounted(t *testing.T) {
	model := llmtest.New(t, llmtest.Script(llmtest.Text("never")))
	s := apitest.Start(t, func(c *config.Config) { c.AIURL, c.AIModel, c.EgressAllow = model.URL, "small", "127.0.0.1" })
	response, err := http.Get("http://" + s.Addresses.Metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "palisade_model_cost_usd_total 0") {
		t.Errorf("%v: no metrics of the model", err)
	}
	if n := len(model.Requests()); n > 0 {
		t.Errorf("%d questions", n)
	}
}
