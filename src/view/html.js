/* SPDX-License-Identifier: MIT */
/* Makes tables sortable and draws the figures from them. Uses of D3 what versions 5 to 7 have in common. */
(() => {
  "use strict";

  const COLOURS = 8;
  const columnsOf = (text) => text.split(" ").map(Number);
  const textOf = (row, i) => row.cells[i].textContent;
  const valueOf = (row, i) => {
    const value = row.cells[i].dataset.value;
    return value === undefined || value === "" ? NaN : Number(value);
  };

  /* ---- sorting ---- */

  function sort(table, heading, i) {
    const numbers = heading.classList.contains("number");
    const now = heading.getAttribute("aria-sort");
    const up = now ? now === "descending" : !numbers; /* of numbers, the largest are asked for first */
    const key = (row) => (numbers ? valueOf(row, i) : textOf(row, i));
    const compare = (a, b) => {
      if (!numbers) return up ? a.localeCompare(b) : b.localeCompare(a);
      if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b); /* empty cells stay at the end */
      return up ? a - b : b - a;
    };
    const rows = Array.from(table.tBodies[0].rows, (row) => ({ row, key: key(row) }));
    rows.sort((a, b) => compare(a.key, b.key));
    table.tBodies[0].append(...rows.map((r) => r.row));
    for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", up ? "ascending" : "descending");
  }

  function makeSortable(table) {
    Array.from(table.tHead.rows[0].cells).forEach((heading, i) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading, i));
    });
  }

  /* ---- what is drawn ---- */

  /* What a figure asks for, with the numbers of its table. Read once, before anybody sorts. */
  function read(figure) {
    const table = figure.closest("section").querySelector("table:not(.matrix)");
    const headings = table.tHead.rows[0].cells;
    const rows = Array.from(table.tBodies[0].rows);
    const over = columnsOf(figure.dataset.over);
    const series = columnsOf(figure.dataset.of).map((i, colour) => ({
      title: headings[i].textContent,
      colour: colour % COLOURS,
      values: rows.map((row) => valueOf(row, i)),
      texts: rows.map((row) => textOf(row, i)),
    }));
    return {
      kind: figure.dataset.plot,
      series: series.filter((s) => s.values.some((v) => v !== 0 && !isNaN(v))),
      names: rows.map((row) => over.map((i) => textOf(row, i)).filter((t) => t).join(" ")),
      pairs: rows.map((row) => over.map((i) => textOf(row, i))),
      titles: over.map((i) => headings[i].textContent),
      at: rows.map((row) => valueOf(row, over[0])),
      across: over.map((i) => headings[i].textContent).join(", "),
      unit: figure.dataset.unit || series[0].title,
      share: series.every((s) => s.texts.every((t) => t === "" || t === "-" || t.endsWith("%"))),
      errors: figure.dataset.error ? rows.map((row) => valueOf(row, Number(figure.dataset.error))) : null,
      most: Number(figure.dataset.most || Infinity),
      ideal: Boolean(figure.dataset.ideal),
      caption: table.caption,
    };
  }

  const short = (v) => (v >= 1e4 ? d3.format(".3~s")(v).replace("G", "B") : d3.format("~g")(v));
  /* Shares are drawn as parts of the whole, unless they would hardly be seen. */
  const largest = (plot, values) => {
    const most = d3.max(values.filter((v) => !isNaN(v))) || 1;
    return plot.share && most > 0.4 ? 1 : most;
  };

  /* An SVG of the figure's width, with the room for its axes; gives the inner part. */
  function canvas(figure, plot, inner, room) {
    const width = Math.max(figure.clientWidth, 260);
    const svg = d3.select(figure).append("svg").attr("role", "img");
    const id = plot.caption.id;
    svg.attr("viewBox", `0 0 ${width} ${inner + room.top + room.bottom}`);
    svg.attr("height", inner + room.top + room.bottom);
    svg.attr("aria-label", `${figure.querySelector("figcaption").textContent}. ${summary(plot)}`);
    svg.attr("aria-describedby", id);
    const g = svg.append("g").attr("transform", `translate(${room.left},${room.top})`);
    return { g, width: width - room.left - room.right, height: inner };
  }

  /* What a plot says in one sentence, for those who hear it. */
  function summary(plot) {
    const range = (s) => {
      const known = s.values.map((v, i) => [v, s.texts[i]]).filter(([v]) => !isNaN(v));
      const low = known.reduce((a, b) => (b[0] < a[0] ? b : a));
      const high = known.reduce((a, b) => (b[0] > a[0] ? b : a));
      return `${s.title}: from ${low[1]} to ${high[1]}`;
    };
    return `${plot.series.map(range).join("; ")}. The numbers are in the table.`;
  }

  function axes(c, plot, x, y, ticks) {
    const left = d3.axisLeft(y).ticks(5).tickSize(-c.width).tickSizeOuter(0);
    c.g.append("g").call(left.tickFormat(plot.share ? d3.format(".3~p") : short)).select(".domain").remove();
    c.g.append("g").attr("transform", `translate(0,${c.height})`).call(ticks(d3.axisBottom(x).tickSizeOuter(0)));
    c.g.append("text").attr("class", "label").attr("x", c.width).attr("y", c.height + 34)
      .attr("text-anchor", "end").text(plot.across);
    c.g.append("text").attr("class", "label").attr("x", -44).attr("y", -10).text(plot.unit);
    c.g.selectAll("text").attr("font-family", null).attr("font-size", null);
  }

  const ROOM = { top: 26, right: 12, bottom: 42, left: 48 };

  function lines(figure, plot) {
    const c = canvas(figure, plot, 240, ROOM);
    const order = d3.range(plot.at.length).sort((a, b) => plot.at[a] - plot.at[b]);
    const x = d3.scaleLinear().domain([0, d3.max(plot.at)]).range([0, c.width]);
    const first = plot.series[0].values[0] / plot.at[0];
    const values = plot.series.reduce((all, s) => all.concat(s.values.map((v, i) => v + (plot.errors ? plot.errors[i] || 0 : 0))), []);
    const y = d3.scaleLinear().domain([0, largest(plot, values)]).nice().range([c.height, 0]);
    const distinct = Array.from(new Set(plot.at));
    axes(c, plot, x, y, (a) => (distinct.length <= 8 ? a.tickValues(distinct) : a.ticks(8)).tickFormat(short));
    if (plot.ideal) {
      const top = Math.min(d3.max(plot.at), y.domain()[1] / first);
      c.g.append("path").attr("class", "ideal").attr("d", d3.line()([[x(0), y(0)], [x(top), y(first * top)]]));
    }
    for (const s of plot.series) {
      const known = order.filter((i) => !isNaN(s.values[i]));
      c.g.append("path").attr("class", `line s${s.colour}`).style("fill", "none")
        .attr("d", d3.line().x((i) => x(plot.at[i])).y((i) => y(s.values[i]))(known));
      if (plot.errors) {
        c.g.selectAll(null).data(known.filter((i) => plot.errors[i] > 0)).enter().append("path").attr("class", "error")
          .attr("d", (i) => [-1, 1].map((sign) => [x(plot.at[i]), y(s.values[i] + sign * plot.errors[i])])
            .map(([at, to], k, ends) => `M${at - 4},${to}h8M${at},${ends[0][1]}V${ends[1][1]}`).join(""));
      }
      c.g.selectAll(null).data(known).enter().append("circle").attr("class", `mark s${s.colour}`).attr("r", 4)
        .attr("cx", (i) => x(plot.at[i])).attr("cy", (i) => y(s.values[i]))
        .append("title").text((i) => `${plot.across} ${plot.names[i]}: ${s.title} ${s.texts[i]}`);
    }
  }

  function steps(figure, plot) {
    const c = canvas(figure, plot, 200, ROOM);
    const n = plot.at.length;
    const end = n > 1 ? 2 * plot.at[n - 1] - plot.at[n - 2] : plot.at[0] + 1; /* the last lasts as long as the one before */
    const x = d3.scaleLinear().domain([plot.at[0], end]).range([0, c.width]);
    const values = plot.series.reduce((all, s) => all.concat(s.values), []);
    const y = d3.scaleLinear().domain([0, largest(plot, values)]).nice().range([c.height, 0]);
    axes(c, plot, x, y, (a) => a.ticks(Math.max(2, c.width / 90)).tickFormat(short));
    for (const s of plot.series) {
      const points = plot.at.map((at, i) => [at, s.values[i]]).concat([[end, s.values[n - 1]]]).filter((p) => !isNaN(p[1]));
      const shape = d3.area().x((p) => x(p[0])).y0(y(0)).y1((p) => y(p[1])).curve(d3.curveStepAfter);
      c.g.append("path").attr("class", `mark area s${s.colour}`).attr("d", shape(points));
      c.g.selectAll(null).data(d3.range(n)).enter().append("rect").attr("fill", "transparent")
        .attr("x", (i) => x(plot.at[i])).attr("width", (i) => x(i + 1 < n ? plot.at[i + 1] : end) - x(plot.at[i]))
        .attr("y", 0).attr("height", c.height)
        .append("title").text((i) => `${plot.across} ${plot.names[i]}: ${s.title} ${s.texts[i]}`);
    }
  }

  function stack(figure, plot) {
    const c = canvas(figure, plot, 240, ROOM);
    const rows = d3.range(plot.names.length);
    const x = d3.scaleBand().domain(rows).range([0, Math.min(c.width, rows.length * 64)]).padding(0.15);
    const layers = d3.stack().keys(d3.range(plot.series.length)).value((i, k) => plot.series[k].values[i] || 0)(rows);
    const total = rows.map((i) => d3.sum(plot.series, (s) => s.values[i] || 0));
    const y = d3.scaleLinear().domain([0, d3.max(total) || 1]).nice().range([c.height, 0]);
    const every = Math.ceil(28 / x.step());
    axes(c, plot, x, y, (a) => a.tickValues(rows.filter((i) => i % every === 0)).tickFormat((i) => plot.names[i]));
    layers.forEach((layer, k) => {
      const s = plot.series[k];
      c.g.selectAll(null).data(rows.filter((i) => layer[i][1] > layer[i][0])).enter().append("rect")
        .attr("class", `mark s${s.colour} fill`).style("stroke", "var(--paper)")
        .attr("x", (i) => x(i)).attr("width", x.bandwidth())
        .attr("y", (i) => y(layer[i][1])).attr("height", (i) => y(layer[i][0]) - y(layer[i][1]))
        .append("title").text((i) => `${plot.across} ${plot.names[i]}: ${s.title} ${s.texts[i]}`
          + ` (${d3.format(".1%")(s.values[i] / total[i])})`);
    });
  }

  function bars(figure, plot) {
    const all = plot.series;
    const whole = plot.share && all.length > 1; /* parts of each row: rows keep their order */
    const sum = plot.names.map((_, i) => d3.sum(all, (s) => s.values[i] || 0));
    const far = (i) => sum[i] + (plot.errors ? plot.errors[i] || 0 : 0);
    const rows = d3.range(plot.names.length).filter((i) => sum[i] > 0)
      .sort((a, b) => (whole ? a - b : sum[b] - sum[a])).slice(0, plot.most);
    const left = Math.min(7 * Math.max(...rows.map((i) => plot.names[i].length)) + 12, 0.45 * figure.clientWidth);
    const c = canvas(figure, plot, 24 * rows.length, { top: 4, right: whole ? 4 : 64, bottom: 4, left });
    const x = d3.scaleLinear().domain([0, d3.max(rows, far)]).range([0, c.width]);
    const y = d3.scaleBand().domain(rows).range([0, c.height]).padding(0.2);
    const fits = Math.floor((left - 12) / 7);
    const cut = (text) => (text.length > fits ? `${text.slice(0, fits - 1)}…` : text);
    const row = c.g.selectAll(null).data(rows).enter().append("g").attr("transform", (i) => `translate(0,${y(i)})`);
    all.forEach((s, k) => {
      const before = (i) => d3.sum(all.slice(0, k), (other) => other.values[i] || 0);
      row.filter((i) => s.values[i] > 0).append("rect").attr("class", `mark s${s.colour} fill`)
        .attr("x", (i) => x(before(i))).attr("width", (i) => x(s.values[i])).attr("height", y.bandwidth())
        .append("title").text((i) => `${plot.names[i]}: ${s.title} ${s.texts[i]}`);
    });
    if (plot.errors) {
      const middle = y.bandwidth() / 2;
      row.filter((i) => plot.errors[i] > 0).append("path").attr("class", "error")
        .attr("d", (i) => [Math.max(sum[i] - plot.errors[i], 0), far(i)].map(x)
          .map((to, k, ends) => `M${to},${middle - 4}v8M${ends[0]},${middle}H${ends[1]}`).join(""))
        .append("title").text((i) => `${plot.names[i]}: ± ${short(plot.errors[i])}`);
    }
    row.append("text").attr("x", -8).attr("y", y.bandwidth() / 2).attr("dy", ".35em").attr("text-anchor", "end")
      .text((i) => cut(plot.names[i])).append("title").text((i) => plot.names[i]);
    if (whole) return;
    row.append("text").attr("class", "label").attr("x", (i) => x(far(i)) + 6).attr("y", y.bandwidth() / 2)
      .attr("dy", ".35em").text((i) => (plot.share ? all[0].texts[i] : short(sum[i])));
  }

  /* A table, so that it can be read as one: its cells are as warm as their values are large. */
  function matrix(figure, plot) {
    const s = plot.series[0];
    const pick = (names) => Array.from(new Set(names)).slice(0, plot.most);
    const across = pick(plot.pairs.map((p) => p[1]));
    const down = pick(plot.pairs.map((p) => p[0]));
    const most = d3.max(s.values.filter((v) => !isNaN(v))) || 1;
    const at = new Map(plot.pairs.map((p, i) => [JSON.stringify(p), i]));
    const box = d3.select(figure).append("div").attr("class", "scroll").attr("tabindex", 0).attr("role", "region")
      .attr("aria-label", figure.querySelector("figcaption").textContent);
    const table = box.append("table").attr("class", "matrix");
    table.append("caption").text(`${s.title}. Rows: ${plot.titles[0]}. Columns: ${plot.titles[1]}.`);
    const head = table.append("thead").append("tr");
    head.append("td");
    head.selectAll(null).data(across).enter().append("th").attr("scope", "col").append("span").text((name) => name);
    const row = table.append("tbody").selectAll(null).data(down).enter().append("tr");
    row.append("th").attr("scope", "row").append("span").text((name) => name);
    row.selectAll(null).data((name) => across.map((other) => at.get(JSON.stringify([name, other])))).enter().append("td")
      .attr("class", (i) => (i === undefined ? "number" : "number mark"))
      .style("--heat", (i) => (i === undefined ? 0 : Math.sqrt(Math.max(s.values[i] || 0, 0) / most)))
      .text((i) => (i === undefined ? "" : s.texts[i]));
  }

  function key(figure, plot) {
    if (plot.series.length < 2 || plot.kind === "matrix") return;
    const item = d3.select(figure).append("ul").attr("class", "key").selectAll("li").data(plot.series).enter().append("li");
    const swatch = item.append("svg").attr("viewBox", "0 0 10 10").attr("aria-hidden", "true");
    swatch.append("rect").attr("class", (s) => `s${s.colour}`).attr("width", 10).attr("height", 10).attr("rx", 2);
    item.append("span").text((s) => s.title);
  }

  const DRAW = { lines, steps, stack, bars, matrix };

  function draw(figure, plot) {
    for (const old of figure.querySelectorAll(":scope > svg, :scope > ul, :scope > div")) old.remove();
    key(figure, plot);
    DRAW[plot.kind](figure, plot);
  }

  /* Draws it, and again whenever there is another width for it. */
  function keepDrawn(figure) {
    const plot = read(figure);
    let width = 0;
    const fit = () => {
      if (figure.clientWidth === width) return;
      width = figure.clientWidth;
      draw(figure, plot);
    };
    if (!plot.series.length) {
      figure.remove(); /* all of it is zero */
      return;
    }
    fit();
    new ResizeObserver(() => requestAnimationFrame(fit)).observe(figure);
  }

  if (typeof d3 !== "undefined") document.querySelectorAll("figure[data-plot]").forEach(keepDrawn);
  document.querySelectorAll("table:not(.record):not(.matrix)").forEach(makeSortable);
})();
