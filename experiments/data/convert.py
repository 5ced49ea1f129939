"""CSV tables of measured rows as Parquet in the project's one schema: ``convert.py FOLDER...`` writes ``measured/``.

Rows keep their order, so that samples and folds drawn by place stay what they are.
"""

import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from dse.base.package_tables import read_table

OUT = Path(__file__).parent / "measured"
TYPES = {"text": pa.string(), "int": pa.int64(), "bool": pa.int64(), "number": pa.float64()}
SCHEMA = pa.schema([(row["column"], TYPES[row["type"]]) for row in read_table("schema/measured.csv")])
IDLE = {"idle_w": "power_w"}
"""Columns of readings of an idle board -> columns of the schema."""


def arrow_table(path: Path) -> pa.Table:
    """Return a CSV table in the schema, columns that it has not empty; raises ValueError at one that has no place."""
    frame = pd.read_csv(path, low_memory=False).rename(columns=IDLE)
    frame = frame if "op" in frame else frame.assign(op="idle")
    unknown = [column for column in frame if column not in SCHEMA.names]
    if unknown:
        raise ValueError(f"{path}: the schema has no column {', '.join(unknown)}")
    given = {name: frame[name] for name in frame}
    columns = [pa.array(given.get(field.name, [None] * len(frame)), field.type, from_pandas=True) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def main(folders: list[str], out: Path = OUT) -> None:
    """Write ``NAME.parquet`` for each table ``SOURCE__NAME.csv`` of the folders."""
    out.mkdir(exist_ok=True)
    for path in sorted(path for folder in folders for path in Path(folder).glob("*__*.csv")):
        table = arrow_table(path)
        file = out / f"{path.stem}.parquet"
        pq.write_table(table, file, compression="zstd", compression_level=19)
        print(f"{file.name}: {table.num_rows} rows, {file.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
