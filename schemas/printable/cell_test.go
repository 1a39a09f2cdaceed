package printable

import "testing"

// TestCell: text that a spreadsheet would run is changed, other text is not.
func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "Alpha": "Alpha", "a=b": "a=b", "Alpha - Beta": "Alpha - Beta", "Alpha, +Beta": "Alpha, +Beta",
		"naïve 円 👨\u200d👩": "naïve 円 👨\u200d👩",
		"=A1":              "'=A1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)",
		// after white space and zero-width characters
		" =A1": "' =A1", "\u00a0\u3000+1": "'\u00a0\u3000+1", "\u200b=A1": `'\u200b=A1`, "\ufeff-1": `'\ufeff-1`,
		"\x00=A1": `'\u0000=A1`, "\xff=A1": "'\ufffd=A1", "\u200d=A1": "'\u200d=A1", `"=A1`: `'"=A1`,
		// after list separators
		"Alpha;=A1": "Alpha;'=A1", "a;;\"=A1": "a;;'\"=A1", "a|@A1": "a|'@A1", "\t=A1": "\t'=A1", "a\r\n=A1": "a\r\n'=A1",
		"\r=A1": "\r'=A1", "\n-1\n+1": "\n'-1\n'+1", "a\u2028=A1": `a\u2028'=A1`, "a\v=A1": `a\u000b'=A1`,
		// signs of other widths
		"＝A1": "'＝A1", "＋1": "'＋1", "－1": "'－1", "＠SUM(A1)": "'＠SUM(A1)", "﹦A1": "'﹦A1", "−1": "'−1",
		// characters that change text direction or control a terminal
		"Alpha\u202etxt.": `Alpha\u202etxt.`, "\u2066a\u2069\u200f\u061c": `\u2066a\u2069\u200f\u061c`,
		"a\x1b[2J\u009b": `a\u001b[2J\u009b`,
	} {
		if got := Cell(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}
