package printable

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"plain text, as it is: {\"a\": 1}", "plain text, as it is: {\"a\": 1}"},
		{"Grüße aus Zürich, 東京 🚀", "Grüße aus Zürich, 東京 🚀"},
		{"a\x00b", "a\ufffdb"},
		{"line 1\r\nline 2\tend", "line 1  line 2 end"},
		{"\u00a0no\u2028break\u3000", " no break "},
		{"\x1b[2J\x07\x7f\u009b", "\ufffd[2J\ufffd\ufffd\ufffd"},
		{"cut \xff\xfe here \xe2\x82", "cut \ufffd here \ufffd"},
		{"safe \u202egnp.exe\u202c \u2066x\u2069 \u200f", "safe \ufffdgnp.exe\ufffd \ufffdx\ufffd \ufffd"},
		{"zero\u200bwidth \ufeff", "zero\ufffdwidth \ufffd"},
	} {
		if got := Text(c.text, 100); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
	}
	for _, long := range []string{strings.Repeat("é", 300), strings.Repeat("\x00", 300), strings.Repeat("x", 300)} {
		for most := range 12 {
			if got := Text(long, most); len(got) > most || len(got) < most-2 || !utf8.ValidString(got) {
				t.Errorf("%.5q… cut to %d bytes is %q", long, most, got)
			}
		}
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{`{"a":"b\n\"\\"}`, `{"a":"b\n\"\\"}`},
		{`{"a":"\u0000"}`, `{"a":"\ufffd"}`},
		{`["x\u0000y\u0000", 1]`, `["x\ufffdy\ufffd", 1]`},
		{`["\\u0000"]`, `["\\u0000"]`},
		{`["\\\u0000"]`, `["\\\ufffd"]`},
		{`["\ud83d\ude80"]`, `["\ud83d\ude80"]`},
		{`["\ud83d"]`, `["\ufffd"]`},
		{`["\ude80\ud83d\u0041"]`, `["\ufffd\ufffd\u0041"]`},
		{`["\ud83d\ud83d\ude80"]`, `["\ufffd\ud83d\ude80"]`},
		{`["\u0041\u00e9"]`, `["\u0041\u00e9"]`},
	} {
		if got := string(JSON([]byte(c.document))); got != c.want {
			t.Errorf("%s becomes %s, want %s", c.document, got, c.want)
		}
	}
}

// Whatever the input, Text returns printable UTF-8 within its length and does not change its own output, and JSON
// returns valid JSON if it was given valid JSON.
func FuzzText(f *testing.F) {
	f.Add("a\x00b\u202e\xff", 5)
	f.Add(`{"a":"\u0000\ud800\\u0000"}`, 100)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most = max(0, min(most, 10_000))
		got := Text(text, most)
		if len(got) > most || !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\n\r\u202e") || Text(got, most) != got {
			t.Errorf("%q becomes %q", text, got)
		}
		if json.Valid([]byte(text)) != json.Valid(JSON([]byte(text))) && json.Valid([]byte(text)) {
			t.Errorf("%q becomes %q", text, JSON([]byte(text)))
		}
	})
}

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 records are", 1: "1 record is", 2: "2 records are",
		1001: "1001 records are"} {
		if got := Count(n, "record is", "records are"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	if one, many := Count(1, "log"), Count(2, "log"); one != "1 log" || many != "2 logs" {
		t.Errorf("%q, %q", one, many)
	}
}
