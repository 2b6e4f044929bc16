/* The page's behaviour: table of all runs, and charts if the library is there. */
(function () {
  "use strict";
  var data = JSON.parse(document.getElementById("data").textContent);
  var runs = data.runs;
  var chosen = runs.slice(0, 8);
  var embed = window.vegaEmbed;
  var keys = sweptKeys();

  function make(tag, parent, text) {
    var element = document.createElement(tag);
    if (text !== undefined) { element.textContent = text; }
    if (parent) { parent.appendChild(element); }
    return element;
  }

  /* Swept keys with more than one value, in the order of their names. */
  function sweptKeys() {
    var values = {};
    runs.forEach(function (run) {
      Object.keys(run.keys).forEach(function (key) {
        (values[key] = values[key] || {})[run.keys[key]] = true;
      });
    });
    return Object.keys(values).sort().filter(function (key) {
      return Object.keys(values[key]).length > 1;
    });
  }

  function numeric(key) {
    return runs.every(function (run) {
      return run.keys[key] === undefined || isFinite(run.keys[key]);
    });
  }

  function value(run, key) {
    var text = run.keys[key];
    return text !== undefined && numeric(key) ? Number(text) : text;
  }

  /* Replaces what a section shows without scripts, but not its heading. */
  function clear(id, heading) {
    var section = document.getElementById(id);
    section.hidden = false;
    section.textContent = "";
    make("h2", section, heading);
    return section;
  }

  function draw(parent, spec) {
    var place = make("div", parent);
    var base = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", background: "white",
      config: { axis: { labelFontSize: 11, titleFontSize: 12 }, view: { stroke: "#cccccc" } } };
    /* Elements can be styled and printed sharply; thousands of them are slow. */
    var renderer = runs.length > 2000 ? "canvas" : "svg";
    return embed(place, Object.assign(base, spec), { renderer: renderer, actions: { export: true, source: false,
      compiled: false, editor: false } }).then(function (result) { return result.view; });
  }

  var tip = [{ field: "name", title: "run" },
    { field: "tokens_per_s", title: "tokens/s", format: ".4s" },
    { field: "mfu", title: "MFU", format: ".1%" },
    { field: "step_s", title: "step, s", format: ".4g" },
    { field: "peak_gib", title: "peak, GiB", format: ".2f" },
    { field: "headroom_gib", title: "headroom, GiB", format: ".2f" }];

  function scatter() {
    var section = clear("scatter", "Speed against memory");
    make("p", section, "The line is the Pareto front: no other run is both faster and smaller. " +
      "Drag to move, scroll to zoom, point at a run to see it.");
    var x = { field: "peak_gib", type: "quantitative", title: "peak memory, GiB",
      scale: { zero: false } };
    var y = { field: "tokens_per_s", type: "quantitative", title: "tokens/s",
      axis: { format: "~s" } };
    return draw(section, { width: 820, height: 380, data: { values: runs }, layer: [
      { params: [{ name: "zoom", select: "interval", bind: "scales" }],
        mark: { type: "point", filled: true, size: 45, opacity: 0.65 },
        encoding: { x: x, y: y, tooltip: tip,
          color: { field: "fits", type: "nominal", title: "fits",
            scale: { domain: [true, false], range: ["#0072b2", "#aaaaaa"] } },
          shape: { field: "fits", type: "nominal",
            scale: { domain: [true, false], range: ["circle", "cross"] } } } },
      { transform: [{ filter: "datum.pareto" }], mark: { type: "line", color: "#d55e00",
        point: { color: "#d55e00", shape: "square", size: 60 } },
        encoding: { x: x, y: y, tooltip: tip, order: { field: "peak_gib" } } }] });
  }

  function breakdown() {
    var section = clear("breakdown", "Where the step goes, chosen runs");
    make("p", section, "Rows of the table below are chosen by a click.");
    var rows = [];
    chosen.forEach(function (run) {
      data.causes.forEach(function (cause, i) {
        rows.push({ name: run.name, cause: cause.name, order: i, s: run.share[i] * run.step_s,
          share: run.share[i] });
      });
    });
    return draw(section, { width: 500, height: { step: 26 }, data: { values: rows }, mark: "bar",
      encoding: { y: { field: "name", type: "nominal", sort: null, title: null,
          axis: { labelLimit: 400 } },
        x: { field: "s", type: "quantitative", title: "s", stack: "zero" },
        order: { field: "order" },
        color: { field: "cause", type: "nominal", sort: null, title: null,
          scale: { domain: data.causes.map(function (c) { return c.name; }),
            range: data.causes.map(function (c) { return c.colour; }) } },
        tooltip: [{ field: "cause" }, { field: "s", format: ".4g" },
          { field: "share", format: ".2%" }] } });
  }

  function memory() {
    var shown = chosen.filter(function (run) { return run.stages; })[0];
    if (!shown) { return Promise.resolve(); }
    var section = clear("memory", "Memory by stage, " + shown.name);
    var rows = [];
    shown.stages.forEach(function (stage, s) {
      data.parts.forEach(function (part, i) {
        rows.push({ stage: s, part: part.name, order: i, gib: stage[i] });
      });
    });
    var limit = shown.peak_gib + shown.headroom_gib;
    return draw(section, { width: 820, height: 260, layer: [
      { data: { values: rows }, mark: "bar", encoding: {
        x: { field: "stage", type: "ordinal", axis: { labelAngle: 0 } },
        y: { field: "gib", type: "quantitative", title: "GiB" }, order: { field: "order" },
        color: { field: "part", type: "nominal", sort: null, title: null,
          scale: { domain: data.parts.map(function (p) { return p.name; }),
            range: data.parts.map(function (p) { return p.colour; }) } },
        tooltip: [{ field: "stage" }, { field: "part" }, { field: "gib", format: ".2f" }] } },
      { data: { values: [{ limit: limit }] }, mark: { type: "rule", color: "#d55e00",
        strokeDash: [6, 4], size: 2 }, encoding: { y: { field: "limit", type: "quantitative" },
        tooltip: [{ field: "limit", title: "limit, GiB", format: ".2f" }] } }] });
  }

  /* One line per run over axes of equal height; at most 400 runs, the fastest. */
  function parallel() {
    if (keys.length === 0) { return Promise.resolve(); }
    var section = clear("parallel", "Parallel coordinates");
    var shown = runs.slice(0, 400);
    var axes = keys.map(function (key) { return { title: key.split(".").pop(),
      of: function (run) { return value(run, key); } }; }).concat([
      { title: "peak, GiB", of: function (run) { return run.peak_gib; } },
      { title: "MFU", of: function (run) { return run.mfu; } }]);
    var rows = [];
    axes.forEach(function (axis) {
      var values = shown.map(axis.of);
      var plain = values.every(function (v) { return typeof v === "number"; });
      var order = plain ? null : Array.from(new Set(values)).sort();
      var low = plain ? Math.min.apply(null, values) : 0;
      var high = plain ? Math.max.apply(null, values) : order.length - 1;
      shown.forEach(function (run, i) {
        var at = plain ? values[i] : order.indexOf(values[i]);
        rows.push({ id: run.id, name: run.name, mfu: run.mfu, axis: axis.title,
          value: String(plain ? Number(values[i].toPrecision(5)) : values[i]),
          at: high > low ? (at - low) / (high - low) : 0.5 });
      });
    });
    make("p", section, "A line is a run, an axis a key from its least to its largest value" +
      (runs.length > 400 ? "; the 400 fastest runs." : "."));
    return draw(section, { width: 820, height: 280, data: { values: rows },
      params: [{ name: "over", select: { type: "point", on: "pointerover", fields: ["id"],
        clear: "pointerout" } }],
      mark: { type: "line", point: { size: 20 } },
      encoding: { x: { field: "axis", type: "nominal", sort: null, title: null,
          axis: { labelAngle: 0 }, scale: { type: "point" } },
        y: { field: "at", type: "quantitative", axis: null }, detail: { field: "id" },
        color: { field: "mfu", type: "quantitative", title: "MFU", scale: { scheme: "viridis" },
          legend: { format: ".0%" } },
        opacity: { condition: { param: "over", value: 0.9 }, value: 0.1 },
        tooltip: [{ field: "name", title: "run" }, { field: "axis" }, { field: "value" },
          { field: "mfu", format: ".2%" }] } });
  }

  /* The best MFU of all runs with these values of two keys. */
  function heat() {
    if (keys.length < 2) { return Promise.resolve(); }
    var section = clear("heat", "Best MFU by two keys");
    var bar = make("div", section);
    bar.className = "bar";
    var picks = [keys[0], keys[1]].map(function (key, i) {
      var label = make("label", bar, i === 0 ? "across " : "up ");
      var select = make("select", label);
      select.id = i === 0 ? "heat-x" : "heat-y";
      keys.forEach(function (name) { make("option", select, name); });
      select.value = key;
      select.addEventListener("change", show);
      return select;
    });
    var place = make("div", section);
    function show() {
      var best = {};
      runs.forEach(function (run) {
        var pair = JSON.stringify([value(run, picks[0].value), value(run, picks[1].value)]);
        if (run.fits && (!best[pair] || run.mfu > best[pair].mfu)) { best[pair] = run; }
      });
      var rows = Object.keys(best).map(function (pair) {
        var v = JSON.parse(pair);
        return { x: v[0], y: v[1], mfu: best[pair].mfu, name: best[pair].name };
      });
      place.textContent = "";
      var all = rows.map(function (row) { return row.mfu; });
      var middle = (Math.min.apply(null, all) + Math.max.apply(null, all)) / 2;
      var x = { field: "x", type: "ordinal", title: picks[0].value, axis: { labelAngle: 0 } };
      var y = { field: "y", type: "ordinal", title: picks[1].value, sort: "descending" };
      return draw(place, { width: 640, height: 300, data: { values: rows }, encoding: { x: x, y: y },
        layer: [{ mark: "rect", encoding: { color: { field: "mfu", type: "quantitative",
          title: "MFU", scale: { scheme: "viridis" }, legend: { format: ".0%" } },
          tooltip: [{ field: "name", title: "best run" }, { field: "mfu", format: ".2%" }] } },
        { mark: { type: "text", fontSize: 11 }, encoding: {
          text: { field: "mfu", format: ".1%" },
          color: { condition: { test: "datum.mfu > " + middle, value: "black" },
            value: "white" } } }] });
    }
    return show();
  }

  /* ---- The table: sort by a click on a heading, filter by text, 100 rows a page ---- */

  function table() {
    var section = clear("top", "Runs");
    var columns = [["run", "name"], ["tokens/s", "tokens_per_s", 0], ["step, s", "step_s", 3],
      ["MFU, %", "mfu", 2, 100], ["peak, GiB", "peak_gib", 2], ["headroom, GiB", "headroom_gib", 2],
      ["fits", "fits"]];
    var bar = make("div", section);
    bar.className = "bar";
    var filter = make("input", make("label", bar, "filter "));
    filter.id = "filter";
    filter.type = "search";
    filter.placeholder = "tp=8 pp=16";
    var count = make("span", bar);
    count.id = "count";
    var back = make("button", bar, "previous");
    var next = make("button", bar, "next");
    var wrap = make("div", section);
    wrap.className = "scroll";
    var element = make("table", wrap);
    var head = make("tr", make("thead", element));
    var body = make("tbody", element);
    var state = { by: "tokens_per_s", down: true, page: 0 };
    columns.forEach(function (column) {
      var button = make("button", make("th", head), column[0]);
      button.addEventListener("click", function () {
        state.down = state.by === column[1] ? !state.down : column[1] !== "name";
        state.by = column[1];
        state.page = 0;
        show();
      });
    });
    filter.addEventListener("input", function () { state.page = 0; show(); });
    back.addEventListener("click", function () { state.page--; show(); });
    next.addEventListener("click", function () { state.page++; show(); });

    function cell(run, column) {
      var v = run[column[1]];
      return column[2] === undefined ? (v === true ? "yes" : v === false ? "no" : v)
        : (v * (column[3] || 1)).toFixed(column[2]);
    }
    /* Every word must be there; a word that ends in a value is not met by a longer value. */
    function matches(run, words) {
      var text = " " + run.name.replace(/,/g, " ") + " " + run.model + " ";
      return words.every(function (word) {
        return word.indexOf("=") > 0 ? text.indexOf(" " + word + " ") >= 0
          : text.indexOf(word) >= 0;
      });
    }
    function show() {
      var words = filter.value.split(/[\s,]+/).filter(Boolean);
      var rows = runs.filter(function (run) { return matches(run, words); });
      rows.sort(function (a, b) {
        var x = a[state.by], y = b[state.by];
        var order = x < y ? -1 : x > y ? 1 : a.id - b.id;
        return state.down ? -order : order;
      });
      var pages = Math.max(1, Math.ceil(rows.length / 100));
      count.textContent = rows.length + " runs, page " + (state.page + 1) + " of " + pages;
      back.disabled = state.page === 0;
      next.disabled = state.page + 1 >= pages;
      body.textContent = "";
      rows.slice(state.page * 100, state.page * 100 + 100).forEach(function (run) {
        var row = make("tr", body);
        row.className = chosen.indexOf(run) >= 0 ? "chosen" : "";
        columns.forEach(function (column) { make("td", row, cell(run, column)); });
        row.addEventListener("click", function () { choose(run); show(); });
      });
    }
    show();
  }

  function choose(run) {
    var at = chosen.indexOf(run);
    if (at >= 0) { chosen.splice(at, 1); } else { chosen.unshift(run); }
    if (embed) { breakdown(); memory(); }
  }

  table();
  if (embed) {
    Promise.all([scatter(), breakdown(), memory(), parallel(), heat()]).then(function (views) {
      window.stepsimViews = views;
      document.body.dataset.drawn = "yes";
    });
  } else {
    document.body.dataset.drawn = "no library";
  }
})();
