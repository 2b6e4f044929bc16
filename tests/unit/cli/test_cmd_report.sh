#!/usr/bin/env bash
# report: the page that shows without scripts, its data, and mistakes.
. "$(dirname "$0")/../../support/cli.sh"

cat >"$scratch/sweep.yaml" <<YAML
base: $small
axes:
  parallel.tp: [1, 2, 3, 4]
  training.seq_len: [1024, 2048]
derived:
  note: "'</script><b>'"
YAML
run sweep "$scratch/sweep.yaml" --db "$scratch/r.db" --quiet
run report "$scratch/r.db" -o "$scratch/page.html" --title 'A <b> & "c" </script>'
expect_status 0
expect_no_out
run query "$scratch/r.db" --format json --sql "select r.run_id, r.tokens_per_s, r.mfu, p.run_id is
    not null as pareto from runs r left join v_pareto p using (run_id) where r.status in ('ok',
    'does_not_fit') order by r.run_id"
python3 - "$scratch/page.html" "$out" <<'PY' || fail "the page"
import html.parser, json, sys
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.tags, self.data, self.title = [], [], "", ""
    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert not any(k in ("src", "href") for k, v in attributes), "the page needs another file"
        if tag not in ("meta", "input", "br"):
            self.open.append((tag, dict(attributes)))
    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag, tag
    def handle_data(self, text):
        if self.open and self.open[-1] == ("script", {"type": "application/json", "id": "data"}):
            self.data += text
        if self.open and self.open[-1][0] == "h1":
            self.title += text
page = Page()
page.feed(open(sys.argv[1]).read())
assert not page.open and page.title == 'A <b> & "c" </script>', (page.open, page.title)
answers = json.load(open(sys.argv[2]))
rows = answers["rows"] if isinstance(answers, dict) else answers
runs = sorted(json.loads(page.data)["runs"], key=lambda r: r["id"])
assert len(runs) == len(rows) == 6, (len(runs), len(rows))
for run, row in zip(runs, rows):
    assert run["id"] == row["run_id"] and abs(run["mfu"] - row["mfu"]) < 1e-15
    assert run["pareto"] == bool(row["pareto"])
    assert abs(sum(run["share"]) - 1) < 1e-12
    assert set(run["keys"]) == {"parallel.tp", "training.seq_len", "note"}
    assert run["keys"]["note"] == "</script><b>"
# three drawings and two tables without scripts; one table tells why tp 3 has no answer
assert page.tags.count("svg") == 3 and page.tags.count("table") == 2, page.tags
assert page.tags.count("circle") + page.tags.count("rect") > 6
PY
grep -q "<td>rejected</td>" "$scratch/page.html" || fail "rejected points are counted"

run report "$scratch/none.db"; expect_status 4
run report "$scratch/r.db" -o "$scratch/no/page.html"; expect_status 4; expect_err "page.html"
run report "$scratch/r.db" --sweep 9; expect_status 3; expect_err "no run with a result"
