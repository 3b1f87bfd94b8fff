package host

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	scmv1 "github.com/palisade/palisade/gen/palisade/scm/v1"
)

// Principal is an application of Microsoft Entra ID that signs in to Azure DevOps with a certificate (RFC 7523).
type Principal struct {
	// SignIn is the base URL of Microsoft Entra ID, Tenant the directory and Client the application there.
	SignIn, Tenant, Client string
	// Key is what NewPrincipalKey returned.
	Key string
}

const (
	// azureScope is Azure DevOps in Microsoft Entra ID.
	azureScope = "499b84ac-1321-427f-aa17-267ca6975798/.default"
	// principalKeyBits and principalKeyLife apply to new keys. Microsoft Entra ID takes RSA keys only.
	principalKeyBits = 2048
	principalKeyLife = 2 * 365 * 24 * time.Hour
	// maxAccessToken is the maximum length of a token in bytes.
	maxAccessToken = 16 << 10
)

// NewPrincipalKey makes a key for a principal, and its certificate, both in PEM. The key contains the certificate, too.
func NewPrincipalKey(name string) (key, certificate string, err error) {
	private, err := rsa.GenerateKey(rand.Reader, principalKeyBits)
	if err != nil {
		return "", "", err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return "", "", err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: clip("Palisade " + name)}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(principalKeyLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", "", err
	}
	certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})) + certificate, certificate, nil
}

// Open signs in and returns Azure DevOps. The credential is valid for an hour.
func (p Principal) Open(ctx context.Context, baseURL string, client *http.Client) (Host, error) {
	api, err := apiURL(scmv1.ScmType_SCM_TYPE_AZURE_DEVOPS, baseURL)
	if err != nil {
		return nil, err
	}
	token, err := p.token(ctx, client)
	if err != nil {
		return nil, err
	}
	return openAzure(baseURL, api, token, true, client), nil
}

// token asks Microsoft Entra ID for an access token.
func (p Principal) token(ctx context.Context, client *http.Client) (string, error) {
	endpoint, err := url.Parse(strings.TrimRight(p.SignIn, "/") + "/" + url.PathEscape(p.Tenant) + "/oauth2/v2.0/token")
	if err != nil {
		return "", malformed("the address of Microsoft Entra ID is not a URL", err)
	}
	assertion, err := p.assertion(endpoint.String())
	if err != nil {
		return "", &Error{Kind: Unauthorized, Text: "the application's private key cannot be used: delete the application and create it again", cause: err}
	}
	form := url.Values{
		"client_id": {p.Client}, "scope": {azureScope}, "grant_type": {"client_credentials"},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"}, "client_assertion": {assertion},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.String(), strings.NewReader(form.Encode()))
	if err != nil {
		return "", malformed("the address of Microsoft Entra ID is not a URL", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Accept", "application/json")
	response, err := Confine(client, endpoint, "").Do(request)
	if err != nil {
		return "", principalError(connection(err))
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", principalError(connection(err))
	}
	if response.StatusCode != http.StatusOK {
		return "", principalRefusal(response, body)
	}
	var answer struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
	}
	err = json.Unmarshal(body, &answer)
	if token := answer.AccessToken; err != nil || token == "" || len(token) > maxAccessToken || strings.ContainsFunc(token, notInHeader) || !strings.EqualFold(answer.TokenType, "Bearer") {
		return "", malformed("the answer of Microsoft Entra ID is not an access token", err)
	}
	return answer.AccessToken, nil
}

func notInHeader(r rune) bool { return r <= ' ' || r > '~' }

// assertion signs that we are the application. The header names the certificate by its hash.
func (p Principal) assertion(audience string) (string, error) {
	block, rest := pem.Decode([]byte(p.Key))
	certificate, _ := pem.Decode(rest)
	if block == nil || certificate == nil {
		return "", errors.New("the stored key is not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", err
	}
	now, hash := time.Now(), sha256.Sum256(certificate.Bytes)
	token := jwt.NewWithClaims(jwt.SigningMethodPS256, jwt.RegisteredClaims{
		Audience: jwt.ClaimStrings{audience}, Issuer: p.Client, Subject: p.Client, ID: rand.Text(),
		NotBefore: jwt.NewNumericDate(now.Add(-clockSkew)), IssuedAt: jwt.NewNumericDate(now.Add(-clockSkew)), ExpiresAt: jwt.NewNumericDate(now.Add(appTokenAge)),
	})
	token.Header["x5t#S256"] = base64.RawURLEncoding.EncodeToString(hash[:])
	return token.SignedString(key)
}

// principalError says that it was the sign-in that failed.
func principalError(e error) error {
	var ours *Error
	if !errors.As(e, &ours) {
		return e
	}
	return &Error{Kind: ours.Kind, Text: "signing in at Microsoft Entra ID failed: " + ours.Text, Reset: ours.Reset, cause: ours.cause}
}

// principalRefusal explains why Microsoft Entra ID gives no token. Its texts begin with a code, such as AADSTS700016
// for an unknown application.
func principalRefusal(response *http.Response, body []byte) error {
	var said struct {
		Error       string
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(body, &said)
	status, wait := response.StatusCode, retryAfter(response.Header)
	switch {
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable && !wait.IsZero():
		return principalError(rateLimited(wait, nil))
	case said.Error == "" || status >= 500:
		return principalError(refusal(status, "", nil))
	}
	text, _, _ := strings.Cut(said.Description, "\n")
	return &Error{Kind: Unauthorized, Text: "Microsoft Entra ID refuses the application: check tenantId and clientId, and that the certificate is uploaded there (it says: " +
		clip(said.Error+": "+text) + ")"}
}
