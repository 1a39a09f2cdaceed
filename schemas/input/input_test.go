package input

import (
	"strings"
	"testing"
)

func TestAddress(t *testing.T) {
	for value, want := range map[string]bool{"kafka:9092": true, "[::1]:1": true, "127.0.0.1:65535": true, "": false,
		"kafka":  false,
		"kafka:": false, ":9092": false, "kafka:0": false, "kafka:65536": false, "kafka:-1": false, "kafka:kafka": false,
		"::1:9092": false, "kafka a:9092": false, "user@kafka:9092": false, "//kafka:9092": false} {
		if got := Address(value); got != want {
			t.Errorf("%q is an address: %v", value, got)
		}
	}
}

func TestValues(t *testing.T) {
	for _, c := range []struct{ value, text, word, password string }{ // the last three may be part of an error, after "!"
		{"", "", "", ""},
		{"https://a.example/x", "https://a.example/x", "https://a.example/x", "https://a.example/x"},
		{" \t\r\n\u00a0\u3000\u2028value\u0085\v ", "value", "value", "!control character"},
		{"   ", "", "", "   "},
		{"two words", "two words", "!white space in it", "two words"},
		{"naïve 円 👍 �", "naïve 円 👍 �", "!white space in it", "naïve 円 👍 �"},
		{"a\u200bb", "!U+200B, as its character 2", "!U+200B", "a\u200bb"},
		{"\ufeffabc", "!U+FEFF, as its character 1", "!U+FEFF", "\ufeffabc"},
		{"é\u00a0b", "!U+00A0, as its character 2", "!U+00A0", "é\u00a0b"},
		{"a\tb", "!U+0009", "!U+0009", "!control character"},
		{"a\x00", "!U+0000", "!U+0000", "!control character"},
		{"a\u202e", "!U+202E", "!U+202E", "a\u202e"},
		{"a\u009b", "!U+009B", "!U+009B", "!control character"},
		{"a\xff", "!not UTF-8 from its character 2", "!not UTF-8", "a\xff"},
	} {
		for name, got := range map[string]struct {
			of   func(string) (string, error)
			want string
		}{"Text": {Text, c.text}, "Word": {Word, c.word}, "Password": {Password, c.password}} {
			value, err := got.of(c.value)
			part, fails := strings.CutPrefix(got.want, "!")
			wrong := fails && (err == nil || value != "" || !strings.Contains(err.Error(), part))
			if wrong || !fails && (err != nil || value != got.want) {
				t.Errorf("%s of %q is %q, %v, want %q", name, c.value, value, err, got.want)
			}
		}
	}
	if _, err := Any("https://a.example/b c"); err == nil {
		t.Error("white space within a URL is accepted")
	}
	if got, err := Any(" a b "); got != "a b" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
