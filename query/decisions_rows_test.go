package query

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lastDecision is the number of the last row of the table of decisions.
const lastDecision = 46

// observedElsewhere are the rows, or parts of rows, that a client of the HTTP API cannot observe or that another test
// covers, and these tests.
var observedElsewhere = []struct {
	row        int
	why        string
	file, test string
}{
	{9, "the bodies are made where events are delivered", "../schemas/webhook/webhook_test.go", "TestBodies"},
	{10, "meta and links of every page", "http_test.go", "TestLinksAndPages"},
	{12, "what a page size may be", "serve/params_test.go", "TestPageParameters"},
	{16, "the forms of a time", "serve/params_test.go", "TestTimeParameters"},
	{19, "every list with a filter by vault", "http_test.go", "TestValidation"},
	{20, "every path of one resource", "http_test.go", "TestValidation"},
	{21, "repeated, empty and unknown parameters, and all mistakes at once", "http_test.go", "TestValidation"},
	{24, "the warning is in the log of the program", "failure_test.go", "TestWarningAboutUnlikeAssets"},
	{29, "every spelling of a host, and the address at each connection", "../schemas/webhook/guard/guard_test.go",
		"TestURLs"},
	{29, "judged again at every connection", "../dispatch/dns_test.go", "TestDNSGames"},
	{31, "the limit of all instances together", "lease_test.go", "TestLimitHoldsOverInstances"},
	{33, "keys are made by the command line", "../schemas/registry/secrets_test.go", "TestAPIKeys"},
	{34, "secrets are made by the command line, and never shown by the API", "../schemas/registry/secrets_test.go",
		"TestSigningSecret"},
	{34, "stored encrypted", "../schemas/registry/secrets_test.go", "TestSealer"},
	{34, "the HMAC key is the whole string", "../schemas/webhook/webhook_test.go", "TestSignatureVector"},
	{35, "the receiver sees timestamp and signature of each attempt", "../dispatch/send_test.go",
		"TestSignatureBytesAndClocks"},
	{35, "the receiver sees a replay", "../dispatch/send_test.go", "TestReplayCommand"},
	{36, "the ids of other chains, logs and partners", "../schemas/webhook/webhook_test.go", "TestEventIDVectors"},
	{37, "ingest waits for the confirmations", "../ingest/referral_test.go", "TestReferralsByConfirmations"},
	{37, "dispatch records what has nowhere to go", "../dispatch/accept_test.go", "TestNoEndpoint"},
	{38, "the receiver sees the attempts", "../dispatch/send_test.go", "TestFailsAfterFourAttempts"},
	{38, "the delays between them", "../dispatch/lane/verdict_test.go", "TestSpecifiedRetries"},
	{42, "the receiver sees the second set of headers", "../dispatch/send_test.go", "TestExactRequest"},
	{42, "ready-made verifiers take it", "../dispatch/samples_test.go", "TestForeignLibrariesVerify"},
	{43, "dispatch opens and closes the breaker", "../dispatch/lane/breaker_test.go", "TestBreakerOpens"},
	{43, "a parked retry is not burned", "../dispatch/parked_test.go", "TestBreakerLife"},
	{44, "the receiver sees the test event", "../dispatch/send_test.go", "TestTestEvent"},
	{45, "the receiver sees the signatures of the overlap", "../dispatch/operate_test.go", "TestRotationWithOverlap"},
}

var (
	rowName  = regexp.MustCompile(`^\d\d [A-Za-z]`)
	rowsOf   = regexp.MustCompile(`(?:^|, )(\d\d) [A-Za-z]`)
	testName = regexp.MustCompile(`^Test[A-Z]`)
)

// TestEveryDecisionHasATest: each row has a subtest that begins with its number, or is covered elsewhere by a test
// that exists.
func TestEveryDecisionHasATest(t *testing.T) {
	covered := map[int]bool{}
	files, err := filepath.Glob("decisions*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(literal.Value); err == nil && rowName.MatchString(text) {
				for _, match := range rowsOf.FindAllStringSubmatch(text, -1) {
					row, _ := strconv.Atoi(match[1])
					covered[row] = true
				}
			}
			return true
		})
	}
	for _, e := range observedElsewhere {
		covered[e.row] = true
		exists := slices.ContainsFunc(parse(t, e.file).Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && testName.MatchString(f.Name.Name) && f.Name.Name == e.test
		})
		if !exists {
			t.Errorf("row %d: %s has no %s", e.row, e.file, e.test)
		}
	}
	for row := 1; row <= lastDecision; row++ {
		if !covered[row] {
			t.Errorf("row %d has no test", row)
		}
		delete(covered, row)
	}
	if len(covered) > 0 {
		t.Errorf("there are no rows %v", slices.Sorted(maps.Keys(covered)))
	}
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestDecisionsAboutCodes: the golden responses contain each code with its status. INTERNAL_ERROR has none, because
// no request should cause it.
func TestDecisionsAboutCodes(t *testing.T) {
	t.Run("27 codes", func(t *testing.T) {
		code := regexp.MustCompile(`"code": "([A-Z_]+)"`)
		got := map[string]int{"INTERNAL_ERROR": 500}
		for _, c := range goldenCases() {
			if strings.HasPrefix(c.name, "error_") {
				got[code.FindStringSubmatch(string(goldenFile(t, c.name)))[1]] = c.status
			}
		}
		same(t, "codes", fmt.Sprint(got), fmt.Sprint(map[string]int{
			"INVALID_ADDRESS": 400, "INVALID_PARAMETER": 400, "INVALID_BODY": 400, "INVALID_WEBHOOK_URL": 400,
			"UNAUTHORIZED": 401, "FORBIDDEN": 403,
			"NOT_FOUND": 404, "METHOD_NOT_ALLOWED": 405, "PAYLOAD_TOO_LARGE": 413, "UNSUPPORTED_MEDIA_TYPE": 415,
			"RATE_LIMITED": 429, "INTERNAL_ERROR": 500, "UNAVAILABLE": 503,
		}))
	})
}
