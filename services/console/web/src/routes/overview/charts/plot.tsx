import { scaleBand, scaleLinear } from "d3-scale";
import { area, curveMonotoneX, line, stack, stackOffsetDiverging, stackOffsetNone } from "d3-shape";
import { cx } from "@/parts/cx";
import { colours, labelOf, type Series, sizeOf, ticksOf, type TimeSpan } from "./series";

const height = 208;
const margin = { top: 8, right: 8, bottom: 24, left: 44 };
/** The narrowest distance between two labels of the time axis. */
const labelWidth = 64;
/** The widest bar: few periods have much room. */
const widestBar = 56;

export type Kind = "area" | "line" | "bar";

interface Props {
  kind: Kind;
  buckets: TimeSpan[];
  series: Series[];
  width: number;
  tick: (value: number) => string;
  marked?: number;
  onMark: (index: number | undefined) => void;
}

/** The drawing of a chart. It is for the eye: the table beside it has the same numbers for everybody. */
export function Plot({ kind, buckets, series, width, tick, marked, onMark }: Props) {
  const x = scaleBand<number>().domain(buckets.map((_, i) => i)).range([margin.left, width - margin.right]).paddingInner(kind === "bar" ? 0.3 : 0).paddingOuter(kind === "bar" ? 0.15 : 0);
  const centre = (i: number) => (x(i) ?? 0) + x.bandwidth() / 2;
  const barWidth = Math.min(x.bandwidth(), widestBar);
  const rows = buckets.map((_, i) => Object.fromEntries(series.map((one) => [one.key, (one.values[i] ?? 0) * (one.below ? -1 : 1)])));
  const layers = kind === "line"
    ? []
    : stack<Record<string, number>>().keys(series.map((one) => one.key)).offset(kind === "bar" ? stackOffsetDiverging : stackOffsetNone)(rows);
  const all = kind === "line" ? series.flatMap((one) => one.values) : layers.flatMap((layer) => layer.flatMap(([low, high]) => [low, high]));
  const y = scaleLinear().domain([Math.min(0, ...all), Math.max(1, ...all)]).nice(4).range([height - margin.bottom, margin.top]);
  const yTicks = y.ticks(4).filter((value, _, every) => Number.isInteger(value) || !every.some((one) => one > 1));
  const xTicks = ticksOf(buckets.length, Math.max(2, Math.floor((width - margin.left - margin.right) / labelWidth)));
  const size = sizeOf(buckets);
  const indexAt = (clientX: number, box: DOMRect) => {
    const at = ((clientX - box.left) / box.width) * width;
    const index = Math.floor((at - margin.left) / x.step());
    return index >= 0 && index < buckets.length ? index : undefined;
  };
  return (
    <svg
      viewBox={`0 0 ${width} ${height}`}
      className="block h-auto w-full"
      aria-hidden
      onPointerMove={(event) => onMark(indexAt(event.clientX, event.currentTarget.getBoundingClientRect()))}
      onPointerLeave={() => onMark(undefined)}
    >
      {yTicks.map((value) => (
        <g key={value} transform={`translate(0 ${y(value)})`}>
          <line x1={margin.left} x2={width - margin.right} className={value === 0 ? "stroke-line-strong" : "stroke-line"} />
          <text x={margin.left - 8} dy="0.32em" textAnchor="end" className="fill-muted text-[11px] tabular-nums">{tick(Math.abs(value))}</text>
        </g>
      ))}
      {xTicks.map((i) => (
        <text key={i} x={centre(i)} y={height - 6} textAnchor={i === buckets.length - 1 && buckets.length > 6 ? "end" : "middle"} className="fill-muted text-[11px]">
          {labelOf(buckets[i] ?? {}, size)}
        </text>
      ))}
      {marked !== undefined && <rect x={(x(marked) ?? 0) - 1} width={Math.max(2, x.bandwidth() + 2)} y={margin.top} height={height - margin.top - margin.bottom} className="fill-ink/7" />}
      {kind === "bar" && layers.map((layer, n) => layer.map(([low, high], i) => (
        high !== low && (
          <rect
            key={`${layer.key} ${i}`}
            x={centre(i) - barWidth / 2}
            width={barWidth}
            y={y(Math.max(low, high))}
            height={Math.max(1, Math.abs(y(low) - y(high)))}
            className={colours[series[n]?.colour ?? "muted"].fill}
          />
        )
      )))}
      {kind === "area" && layers.map((layer, n) => {
        const colour = colours[series[n]?.colour ?? "muted"];
        const shape = area<[number, number]>().x((_, i) => centre(i)).y0(([low]) => y(low)).y1(([, high]) => y(high)).curve(curveMonotoneX);
        return <path key={layer.key} d={shape(layer as unknown as Array<[number, number]>) ?? ""} className={cx(colour.fill, "opacity-90")} />;
      })}
      {kind === "line" && series.map((one) => {
        const colour = colours[one.colour];
        const shape = line<number>().x((_, i) => centre(i)).y((value) => y(value)).curve(curveMonotoneX);
        return (
          <g key={one.key}>
            <path d={shape(one.values) ?? ""} className={cx(colour.stroke, "fill-none")} strokeWidth={2} />
            {(buckets.length <= 12 || one.values.filter(Boolean).length === 1 ? one.values.flatMap((value, i) => (buckets.length <= 12 || value !== 0 ? i : [])) : marked === undefined ? [] : [marked]).map((i) => (
              <circle key={i} cx={centre(i)} cy={y(one.values[i] ?? 0)} r={3} className={colour.fill} />
            ))}
          </g>
        );
      })}
    </svg>
  );
}
